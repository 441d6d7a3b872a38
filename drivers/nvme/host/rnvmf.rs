// SPDX-License-Identifier: GPL-2.0

//! rnvmf: an NVMe over Fabrics host for RDMA.
//!
//! - [`registry`]: the controllers and discoveries of the module.
//! - [`controller`]: one controller, from connect to removal, in a thread of its own.
//! - [`queue`]: one queue: a connection with its commands in flight.
//! - [`disk`]: requests of the block layer as commands; [`passthru`]: commands of users.
//! - [`namespace`]: scans of namespaces, and the disks of a controller.
//! - [`discoveries`]: the logs of discovery controllers that are being read.
//! - [`options`]: what a user asks of a connection.
//! - [`failure`]: why a controller failed; [`notifier`]: how its thread learns of it.
//! - [`stats`]: what the queues have done; [`trace`]: events to trace.
//! - [`netlink`]: the interface to user space; [`sysfs`]: what udev and scripts read; [`ioctl`]:
//!   the ioctls of controllers.
//!
//! Formats and decisions without I/O are in the crate `nvme_proto`.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use registry::Registry;

mod admin;
mod controller;
mod ctrl_error;
mod discoveries;
mod disk;
mod event;
mod ioctl;
mod keep_alive;
mod name;
mod namespace;
mod netlink;
mod options;
mod passthru;
mod registry;
mod stats;
mod sysfs;
mod trace;
mod uapi;

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
}

impl kernel::Module for Rnvmf {
    fn init(module: &'static ThisModule) -> Result<Self> {
        Ok(Self {
            registry: Registry::start(module)?,
        })
    }
}

impl Drop for Rnvmf {
    fn drop(&mut self) {
        self.registry.stop();
    }
}
