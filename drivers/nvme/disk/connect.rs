// SPDX-License-Identifier: GPL-2.0

//! Connecting the queues of a controller.

use crate::{
    Io,
    Queue, //
};
use nvme_rdma_transport::connect::{
    ControllerConfig,
    QueueConnectError,
    QueueConnector,
    QueueSetup, //
};
use rrdma::rdma::cm::{
    Connected,
    Connecting, //
};

/// Connects the queues of one controller.
///
/// The queues call the completion handlers that are compiled in the crate that posts their receives. These
/// run for each request, so the queues are set up in this crate.
pub struct Connector<'a>(QueueConnector<'a, Io>);

impl<'a> Connector<'a> {
    /// Returns a connector for a controller without queues.
    #[inline]
    pub fn new(controller: ControllerConfig<'a, Io>) -> Self {
        Self(QueueConnector::new(controller))
    }

    /// Creates the objects of a queue, and sends its connection request, as [`QueueConnector::start`]
    /// does. Sleeps.
    ///
    /// # Errors
    ///
    /// [`QueueConnectError`].
    #[inline(never)]
    pub fn start(
        &mut self,
        setup: QueueSetup<'_, Io>,
    ) -> Result<Connecting<Queue>, QueueConnectError> {
        self.0.start(setup)
    }

    /// Waits until a queue is connected. Sleeps.
    ///
    /// # Errors
    ///
    /// [`QueueConnectError`].
    #[inline(never)]
    pub fn finish(
        &self,
        connecting: Connecting<Queue>,
    ) -> Result<Connected<Queue>, QueueConnectError> {
        self.0.finish(connecting)
    }
}
