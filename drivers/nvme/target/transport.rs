// SPDX-License-Identifier: GPL-2.0

//! What nvmet asks of the transport.

use crate::{
    connection::Connections,
    listener::PortListener,
    queue::{
        Slot,
        TargetQueue, //
    },
    rdma::Rdma,
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvmet::{
    ControllerId,
    Data,
    Port,
    Request,
    Transport, //
};
use rrdma::net::Address;

impl Transport for Rdma {
    type Context = Arc<Connections>;
    type Listener = PortListener;

    fn listen(connections: &Arc<Connections>, port: Arc<Port<Self>>) -> Result<PortListener> {
        PortListener::new(connections.clone(), port)
    }

    #[inline]
    fn respond(request: Request<Self>, data: Data<Self>) {
        TargetQueue::respond(request, data);
    }

    fn delete_controller(connections: &Arc<Connections>, controller: ControllerId) {
        connections.disconnect(|connection| connection.is_of_controller(controller));
    }

    fn discovery_address(listener: &PortListener, command: &Slot) -> Option<Address> {
        let is_any = listener.address().is_unspecified();
        is_any.then(|| command.queue().addresses().local)
    }

    fn host_address(connections: &Arc<Connections>, controller: ControllerId) -> Option<Address> {
        connections.host_of(controller)
    }
}
