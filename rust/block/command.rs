// SPDX-License-Identifier: GPL-2.0

//! Commands that the driver sends to its own device.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    Disk,
    Operations,
    RequestRef,
    Status, //
};
use crate::bindings;
use kernel::{
    error::from_err_ptr,
    prelude::*, //
};

/// Which way the data of a [`Command`] goes, if it has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the device: [`Op::DriverIn`](super::Op::DriverIn).
    In,
    /// To the device: [`Op::DriverOut`](super::Op::DriverOut).
    Out,
}

/// Which tags a [`Command`] may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagPool {
    /// Those that all requests get: waits if they are used up.
    Shared,
    /// The [reserved](super::TagSetConfig::reserved_tags) ones, which no ordinary request
    /// takes away.
    Reserved,
}

/// A command that the driver sends through the queue of a disk to itself, to have it tagged,
/// timed and serialised like any other request.
///
/// What it is about is between the driver and itself, in [`data`](Self::data).
///
/// # Invariants
///
/// `request` was allocated for us, and blk-mq does not have it.
pub struct Command<'a, T: Operations> {
    request: RequestRef<T>,
    _disk: &'a Disk<T>,
}

impl<'a, T: Operations> Command<'a, T> {
    /// Takes a tag for a command. Sleeps until there is one, and while the disk is frozen. C:
    /// `blk_mq_alloc_request`.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if there are no such tags.
    /// - `ENODEV` if the disk is dead.
    pub fn new(disk: &'a Disk<T>, direction: Direction, tags: TagPool) -> Result<Self> {
        let op = match direction {
            Direction::In => bindings::req_op_REQ_OP_DRV_IN,
            Direction::Out => bindings::req_op_REQ_OP_DRV_OUT,
        };
        let set = disk.tag_set();
        let (available, flags) = match tags {
            TagPool::Shared => (set.depth().saturating_sub(set.reserved_tags()), 0),
            TagPool::Reserved => (set.reserved_tags(), bindings::BLK_MQ_REQ_RESERVED),
        };

        if available == 0 {
            return Err(EINVAL);
        }
        // SAFETY: The queue of a disk is valid.
        let rq = from_err_ptr(unsafe { bindings::blk_mq_alloc_request(disk.queue(), op, flags) })?;

        // INVARIANT: It is ours, and not sent.
        Ok(Self {
            // SAFETY: It is a valid request of `disk`, with a hardware queue, and ours until
            // we are dropped.
            request: unsafe { RequestRef::from_raw(rq) },
            _disk: disk,
        })
    }

    /// The data of the driver.
    #[inline]
    pub fn data(&self) -> Pin<&T::RequestData> {
        self.request.data()
    }

    /// Sends the command to [`queue_rq`](Operations::queue_rq), and waits until it has ended.
    ///
    /// Sleeps; for ever, if the tag set is quiesced. C: `blk_execute_rq`.
    pub fn execute(self) -> Executed<'a, T> {
        // SAFETY: By the invariants it is ours. It is again when the call returns.
        let status = unsafe { bindings::blk_execute_rq(self.request.as_raw(), false) };

        Executed {
            command: self,
            status: Status::from_raw(status),
        }
    }
}

impl<T: Operations> Drop for Command<'_, T> {
    fn drop(&mut self) {
        // SAFETY: By the invariants it is ours, and this is its last use.
        unsafe { bindings::blk_mq_free_request(self.request.as_raw()) };
    }
}

/// A [`Command`] that has ended, with what the driver left in its data. The tag is free when
/// this is dropped.
pub struct Executed<'a, T: Operations> {
    command: Command<'a, T>,
    status: Status,
}

impl<T: Operations> Executed<'_, T> {
    /// How it ended.
    #[inline]
    pub fn status(&self) -> Status {
        self.status
    }

    /// The data of the driver.
    #[inline]
    pub fn data(&self) -> Pin<&T::RequestData> {
        self.command.data()
    }
}
