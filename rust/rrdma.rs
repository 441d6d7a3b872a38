// SPDX-License-Identifier: GPL-2.0

//! Safe Rust over the kernel's RDMA verbs and connection manager, with the
//! blk-mq and generic netlink layers that a storage driver on them needs.
//!
//! - [`rdma`]: clients and devices, protection domains, completion queues, queue
//!   pairs, work requests, memory regions, DMA mapping, the connection manager.
//! - [`block`]: tag sets, requests with typed driver data, disks and their limits.
//! - [`netlink`]: generic netlink families, attributes, policies, multicast.
//! - [`cpu`]: the processors there are.
//! - [`net`]: network namespaces.
//! - [`sync`]: owned workqueues, timed completions, claims.
//! - [`errno`]: the error numbers that the kernel crate does not name.
//!
//! Everything that touches C, and all `unsafe`, is in this crate.

use kernel::prelude::*;

mod bindings;
pub mod block;
mod compat;
pub mod cpu;
pub mod errno;
pub mod net;
pub mod netlink;
pub mod rdma;
pub mod sync;

module! {
    type: Rrdma,
    name: "rrdma",
    authors: ["The rnvme developers"],
    description: "Rust layer over RDMA verbs, the connection manager, blk-mq and genetlink",
    license: "GPL",
}

struct Rrdma;

impl kernel::Module for Rrdma {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        rdma::client::init();
        Ok(Self)
    }
}

impl Drop for Rrdma {
    fn drop(&mut self) {
        block::wait_for_released_disks();
    }
}
