// SPDX-License-Identifier: GPL-2.0

//! Disks: block requests as NVMe commands.
//!
//! - [`ctrl`]: the interface of a disk to its controller.
//! - [`pdu`]: private data of a request, with the passthrough command in it.
//! - [`ns_disk`]: private data of a disk, and its sysfs attributes.
//! - [`hctx`]: hardware queues, and the queue pair of each.
//! - [`ulp`]: callbacks of the transport: completion and retry of requests.
//! - [`ioctl`]: ioctls of a disk.
//! - [`operations`]: callbacks of the block layer: the command of a request, its submission.

mod ctrl;
mod hctx;
mod ioctl;
mod ns_disk;
mod operations;
mod pdu;
mod ulp;

pub(crate) use ctrl::DiskController;
pub(crate) use hctx::{
    hctx_counts,
    HctxQueue, //
};
pub(crate) use ns_disk::{
    BlockShift,
    DiskState,
    NsDisk, //
};
pub(crate) use ulp::end;

use nvme_rdma_transport::{
    admin_channel,
    conn_error,
    queue, //
};
use rrdma::sync::TimedCompletion;

/// The driver of all disks: implements the callbacks of the block layer and of the transport.
pub(crate) struct Io;

/// A queue whose payloads are the disks' requests.
pub(crate) type Queue = queue::Queue<Io>;

/// The private data of a queue.
pub(crate) struct QueueData {
    /// The controller's delays before retries, in units of 100 ms.
    pub(crate) retry_delays: [u16; 3],
}

/// A channel to an admin queue, for one command at a time.
pub(crate) type AdminChannel = admin_channel::AdminChannel<Io>;

/// Keeps the first error of a controller's connections, and wakes its thread.
pub(crate) type ErrorNotifier = conn_error::ErrorNotifier<TimedCompletion>;
