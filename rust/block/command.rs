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
    sync::Msecs, //
};
use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    uaccess::UserPtr, //
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
/// - `request` was allocated by `on_queue`, and blk-mq does not own it.
/// - `bio` is null, or it is the data of `request` and maps memory of the current process.
pub struct Command<'a, T: Operations> {
    request: RequestRef<T>,
    bio: *mut bindings::bio,
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
            bio: ptr::null_mut(),
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

    /// Uses `length` bytes of the current process's memory at `address` as the data of the command.
    /// May be called once. The memory is mapped, or copied if the limits of the disk rule out
    /// mapping it. May sleep. C: `blk_rq_map_user()`.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the command already has data, or if `length` exceeds the limits.
    /// - `EFAULT` if the process may not access the memory, or if the thread has no user memory,
    ///   like a kernel thread.
    /// - `ENOMEM`.
    pub fn map_user(&mut self, address: UserPtr, length: u32) -> Result {
        let rq = self.request.as_raw();
        // SAFETY: By the type invariants, `rq` is valid, and so is its queue.
        let (q, sectors) = unsafe { ((*rq).q, (*(*rq).q).limits.max_hw_sectors) };

        if !self.bio.is_null() || length.div_ceil(super::SECTOR_SIZE) > sectors {
            return Err(EINVAL);
        }
        if kernel::current!().mm().is_none() {
            return Err(EFAULT);
        }
        // SAFETY: By the type invariants, `rq` is a request of `q` that blk-mq does not own. C
        // checks the user address. The current thread has an mm, as checked above.
        to_result(unsafe {
            bindings::blk_rq_map_user(
                q,
                rq,
                ptr::null_mut(),
                address.as_mut_ptr(),
                length as c_ulong,
                bindings::GFP_KERNEL,
            )
        })?;
        // INVARIANT: `blk_rq_map_user()` set the request's `bio` to the mapped memory.
        //
        // SAFETY: By the type invariants, `rq` is valid.
        self.bio = unsafe { (*rq).bio };
        Ok(())
    }

    /// Unmaps the memory of [`map_user`](Self::map_user), and copies bounced data to the process.
    fn unmap_user(&mut self) -> Result {
        match core::mem::replace(&mut self.bio, ptr::null_mut()) {
            bio if bio.is_null() => Ok(()),
            // SAFETY: By the type invariants, `bio` maps memory of the current process. The
            // field is null now, so no other call unmaps `bio`.
            bio => to_result(unsafe { bindings::blk_rq_unmap_user(bio) }),
        }
    }

    /// Sends the command to [`queue_rq`](Operations::queue_rq), and waits for its completion.
    ///
    /// Sleeps; without limit while the tag set is quiesced. C: `blk_execute_rq()`.
    pub fn execute(mut self) -> Executed<'a, T> {
        // SAFETY: By the type invariants, blk-mq does not own the request. It does during the call,
        // and returns the request at its end.
        let status = unsafe { bindings::blk_execute_rq(self.request.as_raw(), false) };

        Executed {
            copied: self.unmap_user(),
            command: self,
            status: Status::from_raw(status),
        }
    }
}

impl<T: Operations> Drop for Command<'_, T> {
    fn drop(&mut self) {
        // The command was not executed, so there is no data to copy and the result is irrelevant.
        let _ = self.unmap_user();
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
    copied: Result,
    status: Status,
}

impl<T: Operations> Executed<'_, T> {
    /// Returns whether the data of a read was copied to the process.
    ///
    /// # Errors
    ///
    /// `EFAULT` if the process has unmapped its memory.
    pub fn copied(&self) -> Result {
        self.copied
    }

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
