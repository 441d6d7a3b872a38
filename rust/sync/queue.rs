// SPDX-License-Identifier: GPL-2.0

//! Workqueues of one's own.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use crate::bindings;
use core::{ops::BitOr, ptr::NonNull};
use kernel::{
    alloc::{AllocError, Flags},
    prelude::*,
    workqueue::{Queue, RawWorkItem},
};

/// How an [`OwnedQueue`] runs its work. Combined with `|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFlags(u32);

impl QueueFlags {
    /// Work runs on the CPU that it was queued on.
    pub const PERCPU: Self = Self(bindings::wq_flags_WQ_PERCPU);

    /// Work runs on any CPU: for work that lasts or sleeps long. Wins over
    /// [`PERCPU`](Self::PERCPU).
    pub const UNBOUND: Self = Self(bindings::wq_flags_WQ_UNBOUND);

    /// One item makes progress even when memory is short: for work that writing
    /// back memory depends on.
    pub const MEM_RECLAIM: Self = Self(bindings::wq_flags_WQ_MEM_RECLAIM);

    /// Work runs at high priority.
    pub const HIGHPRI: Self = Self(bindings::wq_flags_WQ_HIGHPRI);

    /// The flags for C, which wants exactly one of bound and unbound.
    fn as_raw(self) -> u32 {
        if self.0 & Self::UNBOUND.0 != 0 {
            self.0 & !Self::PERCPU.0
        } else {
            self.0 | Self::PERCPU.0
        }
    }
}

impl BitOr for QueueFlags {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A workqueue that is drained and destroyed when dropped.
///
/// Dropping it waits for all work that was queued, and for work that this work
/// queues again: a module that keeps the queue until it exits, and queues its work
/// nowhere else, is not unloaded under its own code. Work must not drop the queue
/// that it runs on, it would wait for itself.
///
/// It does not dereference to [`Queue`], on purpose: that would offer delayed
/// work, whose timer destroying a queue does not stop. Work that has to start
/// later waits for a [`TimedCompletion`](super::TimedCompletion) with a limit,
/// which also lets it be woken early.
///
/// # Invariants
///
/// `ptr` points to a valid workqueue that only this owns, and no delayed work is
/// ever queued on it.
pub struct OwnedQueue {
    ptr: NonNull<bindings::workqueue_struct>,
}

// SAFETY: Workqueues may be used and destroyed by any thread.
unsafe impl Send for OwnedQueue {}

// SAFETY: Workqueues are locked by the workqueue code.
unsafe impl Sync for OwnedQueue {}

impl OwnedQueue {
    /// The most items that may run at a time. C: `WQ_MAX_ACTIVE`.
    pub const MAX_ACTIVE: u32 = bindings::wq_consts_WQ_MAX_ACTIVE;

    /// Makes a queue, of which the kernel shows the first 31 bytes of the name.
    ///
    /// At most `max_active` items run at a time, on each CPU or, if unbound, in
    /// all; 0 is the kernel's default. If unbound, each NUMA node has its share of
    /// that by its CPUs, though 8 (`WQ_DFL_MIN_ACTIVE`) where that is less: items
    /// queued on one node wait for each other earlier, so none may wait for one
    /// that comes later. What lasts as long as its owner is a
    /// [`Thread`](super::Thread).
    ///
    /// Fails with `EINVAL` if `max_active` is more than [`MAX_ACTIVE`](Self::MAX_ACTIVE),
    /// with `ENOMEM` if the kernel made none. Sleeps. C: `alloc_workqueue`.
    pub fn new(name: &CStr, flags: QueueFlags, max_active: u32) -> Result<Self> {
        if max_active > Self::MAX_ACTIVE {
            return Err(EINVAL);
        }
        // SAFETY: `name` is a C string, which the callee copies.
        let ptr = unsafe {
            bindings::alloc_workqueue(name.as_char_ptr(), flags.as_raw(), max_active as i32)
        };
        // INVARIANT: The queue was just made and is given to nobody else.
        Ok(Self {
            ptr: NonNull::new(ptr).ok_or(ENOMEM)?,
        })
    }

    /// The queue, for what may safely be done with one that is going to be
    /// destroyed.
    fn queue(&self) -> &Queue {
        // SAFETY: By the invariant of the type the queue is valid until `self` is
        // dropped.
        unsafe { Queue::from_raw(self.ptr.as_ptr()) }
    }

    /// Queues a work item; fails as [`Queue::enqueue`] does if it is queued. Any
    /// context.
    #[inline]
    pub fn enqueue<W, const ID: u64>(&self, work: W) -> W::EnqueueOutput
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        self.queue().enqueue(work)
    }

    /// Queues a function, for which it allocates a work item.
    ///
    /// Lockdep takes all functions for one work item: one of them that waits for a queue of
    /// others, as dropping it does, is reported, and has to be a
    /// [`WorkItem`](kernel::workqueue::WorkItem) instead.
    #[inline]
    pub fn try_spawn<T>(&self, flags: Flags, func: T) -> Result<(), AllocError>
    where
        T: FnOnce() + Send + 'static,
    {
        self.queue().try_spawn(flags, func)
    }

    /// Waits for all work that is queued by now. Sleeps, and must not be called
    /// by work of this queue. C: `flush_workqueue`.
    #[inline]
    pub fn flush(&self) {
        // SAFETY: By the invariant of the type the queue is valid.
        unsafe { bindings::flush_workqueue(self.ptr.as_ptr()) };
    }
}

impl Drop for OwnedQueue {
    fn drop(&mut self) {
        // SAFETY: By the invariant of the type the queue is valid and only ours.
        // Nothing is queued from outside any more, since that borrows `self`, and
        // there is no timer that would, since there is no delayed work.
        unsafe { bindings::destroy_workqueue(self.ptr.as_ptr()) };
    }
}
