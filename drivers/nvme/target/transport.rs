// SPDX-License-Identifier: GPL-2.0

//! What nvmet asks of the transport.

use crate::{
    connection::Connections,
    listener::PortListener,
    queue::TargetQueue,
    rdma::Rdma, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvmet::{
    ControllerId,
    Port,
    Request,
    Transport, //
};
use rrdma::{
    net::Address,
    rdma::qp::QueuePair, //
};

impl Transport for Rdma {
    type Context = Arc<Connections>;
    type Listener = PortListener;

    fn listen(connections: &Arc<Connections>, port: Arc<Port<Self>>) -> Result<PortListener> {
        PortListener::new(connections.clone(), port)
    }

    #[inline]
    fn respond(queue: &QueuePair<TargetQueue>, request: Request<Self>) {
        TargetQueue::respond(queue, request);
    }

    fn delete_controller(connections: &Arc<Connections>, controller: ControllerId) {
        connections.disconnect(|connection| connection.is_of_controller(controller));
    }

    fn discovery_address(
        listener: &PortListener,
        queue: &QueuePair<TargetQueue>,
    ) -> Option<Address> {
        let is_any = listener.address().is_unspecified();
        is_any.then(|| queue.context().addresses().local)
    }

    fn host_address(connections: &Arc<Connections>, controller: ControllerId) -> Option<Address> {
        connections.host_of(controller)
    }
}
