// SPDX-License-Identifier: GPL-2.0

//! Disks: requests of the block layer as NVMe commands.
//!
//! - [`ctrl`]: what a disk needs of its controller.
//! - [`pdu`]: the private data of a request; [`passthru_cmd`]: the user's command in it.
//! - [`ns_disk`]: the private data of a disk, and what it shows in sysfs.
//! - [`command`]: the command of a request.
//! - [`completion`]: how a request ends, or is retried.
//! - [`submit`]: how a request is sent, or rejected.
//! - [`hctx`]: hardware queues, and the queue pair of each.
//! - [`ulp`]: what the transport calls.
//! - [`ioctl`]: the ioctls of a disk.
//! - [`frozen`]: disks without I/O.
//! - [`operations`]: the callbacks of the block layer.

mod command;
mod completion;
mod ctrl;
mod frozen;
mod hctx;
mod ioctl;
mod ns_disk;
mod operations;
mod passthru_cmd;
mod pdu;
mod submit;
mod ulp;

pub(crate) use completion::end;
pub(crate) use ctrl::DiskController;
pub(crate) use frozen::FrozenDisks;
pub(crate) use hctx::{
    hctx_counts,
    HctxQueue,
    HctxSetData, //
};
pub(crate) use ns_disk::NsDisk;
pub(crate) use ulp::{
    AdminChannel,
    ErrorNotifier,
    Queue,
    QueueData, //
};

/// The driver of all disks: implements the callbacks of the block layer.
pub(crate) struct Io;
