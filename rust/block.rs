// SPDX-License-Identifier: GPL-2.0

//! Block devices on blk-mq.
//!
//! A driver implements [`Operations`], creates a [`TagSet`] for its hardware queues, and any number
//! of [`Disk`]s on the tag set. The block layer passes each [`Request`] to the driver as an owned
//! token. The driver completes, requeues or refuses it exactly once, from any context. Until then
//! it may store the token anywhere, for example in the request's own driver data.
//!
//! `kernel::block::mq` supports no timeouts, driver data in requests, errors, operations, queue
//! maps or limits.
//!
//! # Ownership
//!
//! | driver data                      | created in                         | dropped with             |
//! |----------------------------------|------------------------------------|--------------------------|
//! | [`SetData`] of a tag set         | argument of [`TagSet::new`]        | the last `Arc`           |
//! | [`DiskData`] of a disk           | argument of [`Disk::new`]          | the [`Disk`]             |
//! | [`QueueData`] of a hardware      | [`Disk::new`],                     | the [`Disk`], or in the  |
//! | queue of a disk                  | [`TagSet::set_queues`]             | next `set_queues`        |
//! | [`RequestData`] of a request     | creation of tag set, disk or I/O   | its creator              |
//! |                                  | scheduler                          |                          |
//!
//! [`SetData`]: Operations::SetData
//! [`DiskData`]: Operations::DiskData
//! [`QueueData`]: Operations::QueueData
//! [`RequestData`]: Operations::RequestData
//!
//! # Teardown
//!
//! Dropping a [`Disk`] waits for its requests, so the driver must complete those that it owns and
//! end each [pause](TagSet::pause) of the tag set. Waiting requests then reach
//! [`queue_rq`](Operations::queue_rq) and end there. [`Disk::mark_dead`] refuses new requests in the meantime. After a driver module has
//! dropped its disks, nothing calls its code, so the module may exit.
//!
//! To remove disks only if nobody has them open, a driver asks their [`Openers`] first.
//!
//! C headers: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h),
//! [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

mod command;
mod disk;
mod fops;
mod hw_queue;
mod ioctl;
mod limits;
mod op;
mod openers;
mod operations;
mod queue_counts;
mod ranges;
mod request;
mod request_payload;
mod status;
mod tag_set;
mod vtable;

pub use command::{Command, Direction, Executed, TagPool};
pub use disk::{Disk, DiskConfig, Frozen};
pub(crate) use fops::wait_for_released_disks;
pub use ioctl::Ioctl;
pub use limits::Limits;
pub use op::Op;
pub use openers::{DiskUse, Openers};
pub use operations::{Operations, TimeoutAction};
pub use queue_counts::{QueueCounts, QueueKinds};
pub use ranges::Range;
pub use request::{poll_timed_out, Refused, Request, RequestRef};
pub use request_payload::RequestPayload;
pub use status::Status;
pub use tag_set::{Paused, TagSet, TagSetConfig};

/// Size of a sector in bytes: the unit of positions and lengths in the block layer, independent of
/// the logical block size of a disk.
pub const SECTOR_SIZE: u32 = 512;

/// Largest logical block size of a disk in bytes. C: `BLK_MAX_BLOCK_SIZE`.
pub const MAX_BLOCK_SIZE: u32 = crate::bindings::rrdma_BLK_MAX_BLOCK_SIZE;
