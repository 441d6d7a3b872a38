// SPDX-License-Identifier: GPL-2.0

//! Safe Rust over the kernel's RDMA verbs and connection manager, with the
//! blk-mq and generic netlink layers that a storage driver on them needs.
//!
//! - [`rdma`]: clients and devices, protection domains, completion queues, queue
//!   pairs, work requests, memory regions, DMA mapping, the connection manager.
//! - [`block`]: tag sets, requests with typed driver data, disks and their limits.
//! - [`netlink`]: generic netlink families, attributes, policies, multicast.
//! - [`chrdev`]: character devices.
//! - [`cpu`]: the processors there are.
//! - [`ioctl`]: what a process asks of a device.
//! - [`log`]: how much goes into the kernel's log.
//! - [`memory`]: how much of it is free.
//! - [`net`]: network namespaces, TCP.
//! - [`params`]: parameters of modules.
//! - [`scatter`]: memory in pieces, as devices take it.
//! - [`sysfs`]: facts for udev and scripts.
//! - [`sync`]: owned workqueues, timed completions, claims.
//! - [`text`]: messages that need no memory.
//! - [`trace`]: tracepoints of modules.
//! - [`errno`]: the error numbers that the kernel crate does not name.
//!
//! Everything that touches C, and all `unsafe`, is in this crate.

use kernel::prelude::*;

mod bindings;
pub mod block;
pub mod chrdev;
mod compat;
pub mod cpu;
pub mod errno;
pub mod ioctl;
pub mod log;
pub mod memory;
pub mod net;
pub mod netlink;
pub mod params;
pub mod random;
pub mod rdma;
pub mod scatter;
pub mod sync;
pub mod sysfs;
pub mod text;
pub mod trace;

module! {
    type: Rrdma,
    name: "rrdma",
    authors: ["The rnvmf developers"],
    description: "Rust layer over RDMA verbs, the connection manager, blk-mq and genetlink",
    license: "GPL",
}

struct Rrdma;

impl kernel::Module for Rrdma {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        chrdev::init();
        rdma::client::init();
        rdma::cm::init();
        Ok(Self)
    }
}

impl Drop for Rrdma {
    fn drop(&mut self) {
        block::wait_for_released_disks();
        // Whoever waited for a callback that is code of this module, was told by it that it is
        // as good as over: its task may have been preempted on the last steps out of it. It
        // sleeps on none of them, so this, which waits until every task has slept or left the
        // kernel, waits for them. The module loader does so for those only that are not
        // preempted.
        //
        // SAFETY: The exit of a module may sleep.
        unsafe { bindings::synchronize_rcu_tasks() };
        rdma::cm::forget_names();
        chrdev::forget();
    }
}
