// SPDX-License-Identifier: GPL-2.0

//! Commands that the driver sends to its own device.
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
/// - `request` was allocated for us, and blk-mq does not have it.
/// - `bio` is null, or has memory of this process mapped, which is the data of `request`.
pub struct Command<'a, T: Operations> {
    request: RequestRef<T>,
    bio: *mut bindings::bio,
    /// The disk is there.
    _disk: PhantomData<&'a Disk<T>>,
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
        // SAFETY: The queue of a disk is valid, and the disk is there as long as it is borrowed.
        unsafe { Self::on_queue(disk.queue(), direction, tags) }
    }

    /// Takes a tag for a command, as [`new`](Self::new) does.
    ///
    /// # Safety
    ///
    /// `q` is the queue of a `Disk<T>` that is not gone for `'a`.
    pub(super) unsafe fn on_queue(
        q: *mut bindings::request_queue,
        direction: Direction,
        tags: TagPool,
    ) -> Result<Self> {
        let op = match direction {
            Direction::In => bindings::req_op_REQ_OP_DRV_IN,
            Direction::Out => bindings::req_op_REQ_OP_DRV_OUT,
        };
        // SAFETY: By the requirements of this function; the numbers do not change.
        let (depth, reserved) =
            unsafe { ((*(*q).tag_set).queue_depth, (*(*q).tag_set).reserved_tags) };
        let (available, flags) = match tags {
            TagPool::Shared => (depth.saturating_sub(reserved), 0),
            TagPool::Reserved => (reserved, bindings::BLK_MQ_REQ_RESERVED),
        };

        if available == 0 {
            return Err(EINVAL);
        }
        // SAFETY: By the requirements of this function.
        let rq = from_err_ptr(unsafe { bindings::blk_mq_alloc_request(q, op, flags) })?;

        // INVARIANT: It is ours, and not sent.
        Ok(Self {
            // SAFETY: It is a valid request of the disk, with a hardware queue, and ours until
            // we are dropped.
            request: unsafe { RequestRef::from_raw(rq) },
            bio: ptr::null_mut(),
            _disk: PhantomData,
        })
    }

    /// The data of the driver.
    #[inline]
    pub fn data(&self) -> Pin<&T::RequestData> {
        self.request.data()
    }

    /// Limits the time that it has; it is the tag set's or the disk's otherwise.
    pub fn set_timeout(&mut self, timeout: Msecs) {
        // SAFETY: By the invariants it is ours.
        unsafe {
            (*self.request.as_raw()).timeout =
                c_uint::try_from(timeout.to_jiffies()).unwrap_or(c_uint::MAX);
        }
    }

    /// It fails rather than be tried again: [`Request::no_retry`](super::Request::no_retry).
    pub fn set_no_retry(&mut self) {
        // SAFETY: By the invariants it is ours.
        unsafe {
            (*self.request.as_raw()).cmd_flags |= 1 << bindings::req_flag_bits___REQ_FAILFAST_DRIVER
        };
    }

    /// Gives it `length` bytes of this process's memory at `address` as its data, the first
    /// time; the memory is mapped, or copied where the limits of the disk do not allow for it.
    /// May sleep. C: `blk_rq_map_user`.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the command has data already, or the limits do not allow for so much.
    /// - `EFAULT` if the memory is not the process's to use like that, or the thread has none,
    ///   as those of the kernel.
    /// - `ENOMEM`.
    pub fn map_user(&mut self, address: UserPtr, length: u32) -> Result {
        let rq = self.request.as_raw();
        // SAFETY: By the invariants `rq` is valid, and so is its queue.
        let (q, sectors) = unsafe { ((*rq).q, (*(*rq).q).limits.max_hw_sectors) };

        if !self.bio.is_null() || length.div_ceil(super::SECTOR_SIZE) > sectors {
            return Err(EINVAL);
        }
        if kernel::current!().mm().is_none() {
            return Err(EFAULT);
        }
        // SAFETY: By the invariants `rq` is ours, and of `q`. C checks the address, and expects
        // that the thread has memory, as it has.
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
        // INVARIANT: That is what is mapped.
        //
        // SAFETY: By the invariants `rq` is valid.
        self.bio = unsafe { (*rq).bio };
        Ok(())
    }

    /// Ends what [`map_user`](Self::map_user) began, so that the process has what came.
    fn unmap_user(&mut self) -> Result {
        match core::mem::replace(&mut self.bio, ptr::null_mut()) {
            bio if bio.is_null() => Ok(()),
            // SAFETY: By the invariants it has memory of this process mapped, and is not any
            // more.
            bio => to_result(unsafe { bindings::blk_rq_unmap_user(bio) }),
        }
    }

    /// Sends the command to [`queue_rq`](Operations::queue_rq), and waits until it has ended.
    ///
    /// Sleeps; for ever, if the tag set is quiesced. C: `blk_execute_rq`.
    pub fn execute(mut self) -> Executed<'a, T> {
        // SAFETY: By the invariants it is ours. It is again when the call returns.
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
        // It was not executed: there is nothing to be copied.
        let _ = self.unmap_user();
        // SAFETY: By the invariants it is ours, and this is its last use.
        unsafe { bindings::blk_mq_free_request(self.request.as_raw()) };
    }
}

impl<T: Operations> Ioctl<'_, T> {
    /// A command to the disk: as [`Command::new`].
    pub fn command(&self, direction: Direction) -> Result<Command<'_, T>> {
        // SAFETY: By the invariants.
        unsafe { Command::on_queue(self.q, direction, TagPool::Shared) }
    }
}

/// A [`Command`] that has ended, with what the driver left in its data. The tag is free when
/// this is dropped.
pub struct Executed<'a, T: Operations> {
    command: Command<'a, T>,
    copied: Result,
    status: Status,
}

impl<T: Operations> Executed<'_, T> {
    /// Whether the process has got the data of a command that read; `EFAULT` if its memory is
    /// not there any more.
    pub fn copied(&self) -> Result {
        self.copied
    }

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
