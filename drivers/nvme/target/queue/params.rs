// SPDX-License-Identifier: GPL-2.0

//! What a queue is made of.

use crate::rdma::Rdma;
use kernel::sync::Arc;
use nvme_proto::policy::{
    accept::AcceptedQueue,
    command_data::DataLimits, //
};
use nvmet::{
    HeldController,
    Port, //
};
use rrdma::net::Address;

/// The connection of a queue.
pub(crate) trait QueueConnection: Send + Sync {
    /// Holds the controller with this identifier that was created through `port`; `None` if there is none, or
    /// its connection is about to end. May sleep.
    fn hold_controller(&self, port: &Port<Rdma>, id: u16) -> Option<HeldController>;

    /// Returns whether another message that the host causes may be logged. Any context.
    fn may_log(&self) -> bool;

    /// Ends the connection in another thread. Any context.
    fn end(self: Arc<Self>);
}

/// Addresses of a connection.
#[derive(Clone, Copy)]
pub(crate) struct Addresses {
    /// The address that the host connected to.
    pub(crate) local: Address,
    /// The address of the host.
    pub(crate) host: Address,
}

/// Parameters of a new queue.
pub(crate) struct QueueParams {
    pub(crate) port: Arc<Port<Rdma>>,
    pub(crate) accepted: AcceptedQueue,
    /// Commands that are executed at a time, at most those of `accepted`.
    pub(crate) slots: u16,
    pub(crate) addresses: Addresses,
    pub(crate) limits: DataLimits,
    /// Shared receives that commands may keep while they are executed.
    pub(crate) kept_receives: u16,
    pub(crate) connection: Arc<dyn QueueConnection>,
}
