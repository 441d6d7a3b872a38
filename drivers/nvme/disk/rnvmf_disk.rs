// SPDX-License-Identifier: GPL-2.0

//! The disks of rnvmf: block requests as NVMe commands.
//!
//! This crate has the code that runs for each request, and is compiled for speed. The host,
//! `drivers/nvme/host`, makes and removes the disks; it is compiled for size. Both are in rnvmf.ko.
//! A disk reaches its controller by the trait [`DiskController`].
//!
//! A request takes this way: the block layer calls `queue_rq` of [`Io`] with the [`HctxQueue`] of a
//! hardware queue and the [`NsDisk`]. It builds the command, and submits it to the [`Queue`] of the
//! transport. The response arrives in the transport, which calls `complete` of [`Io`].
//!
//! Generic code is compiled in the crate that uses it. So the functions that set up callbacks for each
//! request are here, and not generic: [`tag_set`] and [`Connector::start`].

mod connect;
mod ctrl;
mod hctx;
mod io;
mod ns_disk;
mod operations;
mod pdu;
pub mod trace;
mod ulp;

pub use connect::Connector;
pub use ctrl::{
    DiskController,
    FailedIo, //
};
pub use hctx::{
    count_unanswered,
    hctx_counts,
    tag_set,
    HctxQueue, //
};
pub use io::{
    AdminChannel,
    ErrorNotifier,
    Io,
    Queue,
    QueueData, //
};
pub use ns_disk::{
    disk_name,
    BlockShift,
    DiskName,
    DiskState,
    NsDisk, //
};
pub use pdu::{
    PassthruCmd,
    RequestPdu, //
};
pub use ulp::end;

/// Prefix of the messages: the name of the module.
const __LOG_PREFIX: &[u8] = b"rnvmf\0";
