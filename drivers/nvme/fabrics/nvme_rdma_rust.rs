// SPDX-License-Identifier: GPL-2.0

//! nvme_rdma_rust: the NVMe/RDMA transport under nvme-core, in place of nvme-rdma.
//!
//! - [`devices`]: the client of RDMA devices.
//! - [`association`]: what the queues of one controller share: errors, device, protection domain.
//! - [`ulp`]: how requests of nvme-core are sent and completed.
//! - [`queue`]: one queue of a controller.
//! - [`transport`]: what nvme-core asks of the transport.
//!
//! The crate `nvme_core` has the sequences of connect, recovery and deletion;
//! `nvme_rdma_transport` has the queues.

use devices::Devices;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvme_core::{
    Controllers,
    Registration, //
};
use rrdma::{
    rdma::client,
    sync::Msecs, //
};
use transport::{
    Rdma,
    Shared, //
};

mod association;
mod devices;
mod queue;
mod transport;
mod ulp;

module! {
    type: NvmeRdmaRust,
    name: "nvme_rdma_rust",
    authors: ["The rnvmf developers"],
    description: "NVMe host RDMA transport driver in Rust",
    license: "GPL",
}

rrdma::parameters! {
    transport: Text<15> = "rdma", "name of the transport; another than that of nvme-rdma lets both serve";
    quiesce_time: Number<0, 100> = 0, "seconds to hold the writes of a lost connection whose end the target has not acknowledged";
}

/// The module. Its fields are dropped in this order: the controllers hold RDMA devices.
struct NvmeRdmaRust {
    _transport: Pin<KBox<Registration<Rdma>>>,
    _devices: Arc<client::Registration<Devices>>,
}

impl kernel::Module for NvmeRdmaRust {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let controllers = Controllers::new()?;
        let removal = Arc::new(controllers.clone(), GFP_KERNEL)?;
        let devices = client::Registration::new(removal as Arc<_>)?;
        let devices = Arc::new(devices, GFP_KERNEL)?;
        let name = parameters::transport.get();
        let shared = Shared {
            devices: devices.clone(),
            quiesce_time: Msecs::new(parameters::quiesce_time.get().saturating_mul(1000)),
        };
        let transport = Registration::new(&name, module, controllers, shared);
        Ok(Self {
            _transport: KBox::pin_init(transport, GFP_KERNEL)?,
            _devices: devices,
        })
    }
}
