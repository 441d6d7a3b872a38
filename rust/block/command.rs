// SPDX-License-Identifier: GPL-2.0

//! Commands that a driver sends to its own device ("passthrough requests" in C).
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    Disk,
    Ioctl,
    Operations,
    RequestRef,
    Status, //
};
use crate::{
    bindings,
    memory,
    sync::Msecs, //
};
use core::marker::PhantomData;
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*, //
};

/// Direction of the data of a [`Command`]; has no effect without data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the device; the request is an [`Op::DriverIn`](super::Op::DriverIn).
    In,
    /// To the device; the request is an [`Op::DriverOut`](super::Op::DriverOut).
    Out,
}

/// Pool of tags that a [`Command`] allocates from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagPool {
    /// The tags of all requests. Allocation waits while all are in use.
    Shared,
    /// The [reserved](super::TagSetConfig::reserved_tags) tags, which only commands use.
    Reserved,
}

/// A command that the driver sends to itself through the queue of a disk. blk-mq gives it a tag and
/// a timeout, as for any other request.
///
/// The driver data of the request, [`data`](Self::data), holds the command itself.
///
/// # Invariants
///
/// `request` was allocated by `on_queue`, and blk-mq does not own it. It has no `bio`.
pub struct Command<'a, T: Operations> {
    request: RequestRef<T>,
    /// Keeps the disk borrowed, so that `request` belongs to a live queue.
    _disk: PhantomData<&'a Disk<T>>,
}

impl<'a, T: Operations> Command<'a, T> {
    /// Allocates a tag for a command. Sleeps until a tag is free, and while the disk is frozen. C:
    /// `blk_mq_alloc_request()`.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the pool has no tags.
    /// - `ENODEV` if the disk is dead.
    pub fn new(disk: &'a Disk<T>, direction: Direction, tags: TagPool) -> Result<Self> {
        // SAFETY: By the invariants of `Disk`, this is the queue of a `Disk<T>`. The disk is
        // borrowed for `'a`.
        unsafe { Self::on_queue(disk.queue(), direction, tags) }
    }

    /// Allocates a tag for a command on a raw queue; see [`new`](Self::new).
    ///
    /// # Safety
    ///
    /// `q` is the queue of a `Disk<T>` that exists for `'a`.
    pub(super) unsafe fn on_queue(
        q: *mut bindings::request_queue,
        direction: Direction,
        tags: TagPool,
    ) -> Result<Self> {
        let op = match direction {
            Direction::In => bindings::req_op_REQ_OP_DRV_IN,
            Direction::Out => bindings::req_op_REQ_OP_DRV_OUT,
        };
        // SAFETY: By the safety requirements of this function, `q` is valid, and so is its tag set.
        // Both numbers are constant after the tag set is allocated.
        let (depth, reserved) =
            unsafe { ((*(*q).tag_set).queue_depth, (*(*q).tag_set).reserved_tags) };
        let (available, flags) = match tags {
            TagPool::Shared => (depth.saturating_sub(reserved), 0),
            TagPool::Reserved => (reserved, bindings::BLK_MQ_REQ_RESERVED),
        };

        if available == 0 {
            return Err(EINVAL);
        }
        // SAFETY: By the safety requirements of this function, `q` is valid.
        let rq = from_err_ptr(unsafe { bindings::blk_mq_alloc_request(q, op, flags) })?;

        // INVARIANT: `rq` was just allocated and is not submitted.
        Ok(Self {
            // SAFETY: `blk_mq_alloc_request()` returned a valid request of the disk with a hardware
            // queue. It is freed only when this command is dropped.
            request: unsafe { RequestRef::from_raw(rq) },
            _disk: PhantomData,
        })
    }

    /// Returns the driver data of the request.
    #[inline]
    pub fn data(&self) -> Pin<&T::RequestData> {
        self.request.data()
    }

    /// Sets the timeout. The default is that of the disk, or else of the tag set.
    pub fn set_timeout(&mut self, timeout: Msecs) {
        // SAFETY: By the type invariants, blk-mq does not own the request, so nothing else accesses
        // `timeout`.
        unsafe {
            (*self.request.as_raw()).timeout =
                c_uint::try_from(timeout.to_jiffies()).unwrap_or(c_uint::MAX);
        }
    }

    /// Marks the command as not to be retried; see [`Request::no_retry`](super::Request::no_retry).
    pub fn set_no_retry(&mut self) {
        // SAFETY: By the type invariants, blk-mq does not own the request, so nothing else accesses
        // `cmd_flags`.
        unsafe {
            (*self.request.as_raw()).cmd_flags |= 1 << bindings::req_flag_bits___REQ_FAILFAST_DRIVER
        };
    }

    /// Sends the command to [`queue_rq`](Operations::queue_rq), and waits for its completion. `data`
    /// is the data of the command, `None` for a command without data.
    ///
    /// Data of a process is copied to a buffer before the command is created. Memory of the process
    /// itself would not do: a page fault takes any time, and a freeze waits for the command meanwhile. The
    /// data is an allocation, because `blk_rq_map_kern()` finds no pages for memory of a module.
    ///
    /// Sleeps; without limit while the tag set is quiesced. C: `blk_rq_map_kern()`,
    /// `blk_execute_rq()`.
    ///
    /// # Errors
    ///
    /// The command was not sent.
    ///
    /// - `EINVAL` if there is more data than the limits of the disk allow, or a buffer without data.
    /// - `ENOMEM`.
    pub fn execute(self, data: Option<&mut KVVec<u8>>) -> Result<Executed<'a, T>> {
        let rq = self.request.as_raw();

        if let Some(data) = data {
            let length = c_uint::try_from(data.len())?;
            // An allocation must not wait for I/O to the disk. A freeze may hold that I/O, and waits
            // for this command.
            let mapped = memory::without_io(|| {
                let data = data.as_mut_ptr().cast();
                // SAFETY: By the type invariants, blk-mq does not own the request. `data` is valid
                // memory that nobody else accesses until `execute` returns, and in the linear mapping or of
                // vmalloc. The request is executed below, and its end releases the memory.
                unsafe { bindings::blk_rq_map_kern(rq, data, length, bindings::GFP_KERNEL) }
            });
            to_result(mapped)?;
        }
        // SAFETY: By the type invariants, blk-mq does not own the request. It does during the call,
        // and returns the request at its end.
        let status = unsafe { bindings::blk_execute_rq(rq, false) };

        Ok(Executed {
            command: self,
            status: Status::from_raw(status),
        })
    }
}

impl<T: Operations> Drop for Command<'_, T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, blk-mq does not own the request, and this is its last
        // use.
        unsafe { bindings::blk_mq_free_request(self.request.as_raw()) };
    }
}

impl<T: Operations> Ioctl<'_, T> {
    /// Allocates a tag for a command to the disk; see [`Command::new`].
    pub fn command(&self, direction: Direction) -> Result<Command<'_, T>> {
        // SAFETY: By the type invariants, `q` is the queue of a `Disk<T>`, which is not removed
        // while this borrow of `self` lasts.
        unsafe { Command::on_queue(self.q, direction, TagPool::Shared) }
    }
}

/// A completed [`Command`] with the results that the driver stored in its data. Frees the tag when
/// dropped.
pub struct Executed<'a, T: Operations> {
    command: Command<'a, T>,
    status: Status,
}

impl<T: Operations> Executed<'_, T> {
    /// Returns the status of the completed command.
    #[inline]
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns the driver data of the request.
    #[inline]
    pub fn data(&self) -> Pin<&T::RequestData> {
        self.command.data()
    }
}
