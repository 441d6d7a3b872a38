// SPDX-License-Identifier: GPL-2.0

//! nvmet_rdma_rust: the NVMe/RDMA transport under nvmet, in place of nvmet-rdma.
//!
//! - [`settings`]: the parameters of the module.
//! - [`devices`]: RDMA devices, and what the queues on one share.
//! - [`rdma`]: the transport as a type, and how responses are sent.
//! - [`queue`]: one queue: commands from their capsule to their response.
//! - [`connection`]: accepts a connection request, and ends the connection.
//! - [`listener`]: listens at the address of a port.
//! - [`transport`]: what nvmet asks of the transport.
//! - [`watchdog`]: ends the connections of hosts that answer neither RDMA READs nor probes.
//!
//! The crate `nvmet` has the types of commands and ports; nvmet has all else.

use connection::Connections;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvmet::Registration;
use rdma::Rdma;
use rrdma::sync::Thread;
use settings::parameters;

mod connection;
mod devices;
mod listener;
mod queue;
mod rdma;
mod settings;
mod shared_receives;
mod transport;
mod watchdog;

module! {
    type: NvmetRdmaRust,
    name: "nvmet_rdma_rust",
    authors: ["The rnvmf developers"],
    description: "NVMe target RDMA transport driver in Rust",
    license: "GPL",
}

/// The module. Dropping the registration waits until all queues are destroyed.
struct NvmetRdmaRust {
    _transport: Pin<KBox<Registration<Rdma>>>,
    connections: Arc<Connections>,
    _watchdog: Thread,
}

impl kernel::Module for NvmetRdmaRust {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let shared_receives = parameters::use_srq
            .get()
            .then(|| parameters::srq_size.get());
        let connections = Connections::new(shared_receives)?;
        connections.start()?;
        let watchdog = watchdog::start(connections.clone()).inspect_err(|_| connections.stop())?;
        let transport = Registration::new(module, connections.clone());
        let transport =
            KBox::pin_init(transport, GFP_KERNEL).inspect_err(|_| connections.stop())?;
        Ok(Self {
            _transport: transport,
            connections,
            _watchdog: watchdog,
        })
    }
}

impl Drop for NvmetRdmaRust {
    fn drop(&mut self) {
        self.connections.disconnect(|_| true);
        self.connections.wait_until_ended();
    }
}
