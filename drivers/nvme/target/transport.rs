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
    Parsed,
    Port,
    Request,
    Sgl,
    Transport, //
};
use rrdma::{
    net::Address,
    rdma::{
        cq::Completion,
        qp::QueuePair,
        rw::RdmaRw, //
    },
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

    #[inline]
    fn responded(
        queue: &QueuePair<TargetQueue>,
        request: Request<Self>,
        completion: &Completion<'_>,
    ) {
        TargetQueue::sent(queue, request, completion);
    }

    #[inline]
    fn data_read(
        queue: &QueuePair<TargetQueue>,
        parsed: Parsed<Self>,
        read: RdmaRw<Sgl, TargetQueue>,
        completion: &Completion<'_>,
    ) {
        TargetQueue::data_read(queue, parsed, read, completion);
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
