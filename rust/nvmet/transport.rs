// SPDX-License-Identifier: GPL-2.0

//! The trait that a transport implements.

use crate::{
    port::Port,
    request::Request,
    submission_queue::ControllerId,
    types::TransportTypes, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    net::Address,
    rdma::qp::QueuePair, //
};

/// A transport under nvmet.
///
/// | method               | context                                   | waits for it at the end         |
/// |----------------------|-------------------------------------------|---------------------------------|
/// | `listen`             | process, under nvmet's configuration lock | the caller                      |
/// | drop of `Listener`   | process, under nvmet's configuration lock | the caller                      |
/// | `respond`            | any                                       | [`SubmissionQueue::destroy`]    |
/// | `delete_controller`  | process, under locks of nvmet             | unloading                       |
/// | `discovery_address`  | process, during a command                 | [`SubmissionQueue::destroy`]    |
/// | `host_address`       | process                                   | unloading                       |
///
/// A command may wait for nvmet's configuration lock. So a `Listener` must not wait for commands when
/// it is dropped.
///
/// [`SubmissionQueue::destroy`]: crate::SubmissionQueue::destroy
pub trait Transport: TransportTypes {
    /// Data of the registration.
    type Context: Send + Sync;

    /// A listener at the address of a port. Dropped when the port is disabled.
    type Listener: Send + Sync;

    /// Listens at the address of a port (`add_port`). May sleep.
    ///
    /// # Errors
    ///
    /// Any `errno`. The `symlink()` in configfs that enables the port returns it.
    fn listen(context: &Self::Context, port: Arc<Port<Self>>) -> Result<Self::Listener>;

    /// Sends the response of a request (`queue_response`). nvmet has returned the request, with the data of
    /// the command, to the transport, and does not use it any more. Any context.
    fn respond(queue: &QueuePair<Self::Endpoint>, request: Request<Self>);

    /// Disconnects the queues of a controller (`delete_ctrl`). Work item of nvmet; must not wait for their end.
    fn delete_controller(context: &Self::Context, controller: ControllerId);

    /// Returns the address to report in the discovery log to the host of a queue; `None` for the configured
    /// address (`disc_traddr`). Process context, during a command.
    fn discovery_address(
        listener: &Self::Listener,
        queue: &QueuePair<Self::Endpoint>,
    ) -> Option<Address>;

    /// Returns the address of the host of a controller; `None` if it is not known (`host_traddr`). Process
    /// context.
    fn host_address(context: &Self::Context, controller: ControllerId) -> Option<Address>;
}
