// SPDX-License-Identifier: GPL-2.0

//! Block devices on blk-mq.
//!
//! A driver implements [`Operations`], makes a [`TagSet`] of its hardware queues
//! and, on it, any number of [`Disk`]s. The block layer then hands it each
//! [`Request`] as an owned token. The driver ends it, requeues it or refuses it,
//! once, from wherever it learns of the outcome, and until then may keep it where
//! it likes: in its own data of the request, for one.
//!
//! What the kernel crate has for this, `kernel::block::mq`, knows no time-outs, no
//! data of the driver in a request, no errors, no operations, no queue maps and no
//! limits.
//!
//! # Ownership
//!
//! | data of the driver              | lives from                      | until                      |
//! |---------------------------------|---------------------------------|----------------------------|
//! | [`SetData`], of the tag set     | [`TagSet::new`]                 | the last `Arc` is dropped  |
//! | [`DiskData`], of the disk       | [`Disk::new`]                   | the [`Disk`] is dropped    |
//! | [`QueueData`], of a disk and    | in [`Disk::new`], or            | the next `set_queues`, or  |
//! | a hardware queue                | [`TagSet::set_queues`]          | the [`Disk`] is dropped    |
//! | [`RequestData`], of a request   | tag set, disk and I/O scheduler | those are gone             |
//! |                                 | are made                        |                            |
//!
//! [`SetData`]: Operations::SetData
//! [`DiskData`]: Operations::DiskData
//! [`QueueData`]: Operations::QueueData
//! [`RequestData`]: Operations::RequestData
//!
//! # Teardown
//!
//! Dropping a [`Disk`] waits for its requests, so the driver must see to it that
//! they end: what it holds it completes, and a quiesced tag set must be unquiesced,
//! so that what waits reaches [`queue_rq`](Operations::queue_rq) and ends there.
//! [`Disk::mark_dead`] keeps new ones out in the meantime. A driver module that
//! drops its disks before it exits leaves nothing behind that would call it.
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
pub use operations::{Operations, TimeoutAction};
pub use queue_counts::{QueueCounts, QueueKinds};
pub use ranges::{Range, Ranges};
pub use request::{Refused, Request, RequestRef};
pub use request_payload::RequestPayload;
pub use status::Status;
pub use tag_set::{TagSet, TagSetConfig};

/// The unit of positions and lengths in the block layer, in bytes, whatever the
/// logical block size of a disk.
pub const SECTOR_SIZE: u32 = 512;
