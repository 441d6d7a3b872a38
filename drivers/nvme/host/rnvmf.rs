// SPDX-License-Identifier: GPL-2.0

//! rnvmf: an NVMe over Fabrics host for RDMA.
//!
//! From the bottom up:
//!
//! - [`ctrl_error`], [`name`], [`options`], [`event`]: data.
//! - [`stats`]: counters of a controller.
//! - [`passthru`]: passthrough commands; [`disk_ioctl`]: those of disks.
//! - [`admin`]: admin commands, and when the next keep-alive is due.
//! - [`namespace`]: scans of namespaces, and the disks of a controller.
//! - [`controller`]: one controller, from connect to removal, in a thread of its own.
//! - [`netlink`], [`sysfs`], [`ioctl`]: the interfaces to user space.
//! - [`registry`], [`discoveries`]: the controllers and discoveries of the module.
//!
//! Disks and their requests are in the crate `rnvmf_disk`, queues in `nvme_rdma_transport`, formats and
//! policies in `nvme_proto`, the numbers of the netlink interface in `rnvmf_uapi`.
//!
//! The crate is compiled for size. A function with many callers is `inline(never)` if calls of it are
//! smaller than its code.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use netlink::NetlinkEvents;
use registry::Registry;
use rnvmf_uapi as uapi;

mod admin;
mod controller;
mod ctrl_error;
mod discoveries;
mod disk_ioctl;
mod event;
mod ioctl;
mod name;
mod namespace;
mod netlink;
mod options;
mod passthru;
mod registry;
mod stats;
mod sysfs;

module! {
    type: Rnvmf,
    name: "rnvmf",
    authors: ["The rnvmf developers"],
    description: "NVMe over Fabrics host for RDMA",
    license: "GPL",
    alias: ["net-pf-16-proto-16-family-rnvmf"],
}

struct Rnvmf {
    registry: Arc<Registry>,
    events: Arc<NetlinkEvents>,
}

impl kernel::Module for Rnvmf {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let events = NetlinkEvents::new()?;
        let registry = Registry::start(module, events.clone())?;
        // From here on, drop() tears down everything in order.
        let this = Self { registry, events };
        this.events.start(module, this.registry.clone())?;
        Ok(this)
    }
}

impl Drop for Rnvmf {
    fn drop(&mut self) {
        self.registry.close();
        self.events.stop();
        self.registry.stop();
    }
}
