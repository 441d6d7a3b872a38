// SPDX-License-Identifier: GPL-2.0

//! RDMA verbs, the connection manager and what a storage driver needs of the kernel, for modules in safe Rust. All
//! `unsafe` code and all calls of C are in this crate, which knows no NVMe, and in `nvme_core` and `nvmet`.
//!
//! - [`rdma`]: devices, queue pairs, work requests, memory regions, connections.
//! - [`block`]: disks on blk-mq, their tag sets and requests.
//! - [`chrdev`]: character devices.
//! - [`cpu`]: number of CPUs, rescheduling.
//! - [`errno`]: error numbers that the kernel crate lacks.
//! - [`ioctl`]: ioctl calls of processes.
//! - [`log`]: rate limits for log messages.
//! - [`memory`]: free memory, allocations without I/O.
//! - [`net`]: network namespaces, addresses, TCP.
//! - [`netlink`]: generic netlink families.
//! - [`params`]: module parameters.
//! - [`random`]: random numbers.
//! - [`scatter`]: scattered memory for devices.
//! - [`sync`]: completions, workqueues, threads, locks, time limits.
//! - [`sysfs`]: attributes of disks and devices.
//! - [`text`]: messages in fixed buffers.
//! - [`trace`]: tracepoints of modules.
//!
//! # Example
//!
//! Sends a message. The operation owns the buffer until the send completes:
//!
//! ```ignore
//! // Documentation/example/hello.rs
//! let mut buffer = DmaBuffer::new(queue.device().clone(), HELLO.len(), Direction::ToDevice)?;
//! buffer.write().copy_from_slice(HELLO);
//! queue
//!     .post_send(Operation::new(Greeting(buffer))?, |greeting, chain| {
//!         chain.send([greeting.0.sge()])
//!     })
//!     .map_err(|unposted| unposted.error)
//! ```

use kernel::prelude::*;

// `RcuSlot` waits for a grace period in safe functions. Another RCU would let that wait end the caller's own section.
#[cfg(not(CONFIG_PREEMPT_RCU))]
compile_error!("rrdma needs a kernel with CONFIG_PREEMPT_RCU");

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
    description: "Rust abstractions for RDMA verbs, the RDMA CM, blk-mq and generic netlink",
    license: "GPL",
}

struct Rrdma {
    _modules: sync::ModuleNotifier,
}

impl kernel::Module for Rrdma {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        chrdev::init();
        rdma::client::init();
        rdma::cm::init();
        let _modules = sync::ModuleNotifier::new()?;
        Ok(Self { _modules })
    }
}

impl Drop for Rrdma {
    fn drop(&mut self) {
        block::wait_for_released_disks();
        sync::wait_for_later();
        // A callback of this module that signalled its end may have been preempted before it returned. It does not
        // sleep any more, so this waits for it. The module loader does not wait for preempted tasks.
        //
        // SAFETY: Module exit may sleep.
        unsafe { bindings::synchronize_rcu_tasks() };
        rdma::cm::forget_names();
        chrdev::forget();
    }
}
