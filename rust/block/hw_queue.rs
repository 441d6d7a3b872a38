// SPDX-License-Identifier: GPL-2.0

//! Driver data of hardware queues.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::Operations;
use crate::bindings;
use core::ptr::{
    self,
    NonNull, //
};
use kernel::prelude::*;

/// Identifies a hardware queue among those of a tag set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct HctxKey {
    queue: *const bindings::request_queue,
    index: u32,
}

impl HctxKey {
    /// Returns the key of a hardware queue.
    ///
    /// # Safety
    ///
    /// `hctx` is valid, and is hardware queue `index` of its disk.
    pub(super) unsafe fn of(hctx: *const bindings::blk_mq_hw_ctx, index: u32) -> Self {
        Self {
            // SAFETY: By the safety requirements of this function, `hctx` is valid.
            queue: unsafe { (*hctx).queue },
            index,
        }
    }
}

/// Target of the `driver_data` of a `struct blk_mq_hw_ctx`: the driver data, and a link for the
/// list of retired hardware queues.
///
/// `queue_rq` may read the data on other CPUs from `attach` until it is dropped. Meanwhile no
/// reference to the whole structure may exist, because `next` changes.
pub(super) struct HwQueue<T: Operations> {
    data: T::QueueData,
    key: HctxKey,
    next: *mut Self,
}

impl<T: Operations> HwQueue<T> {
    /// Allocates the data to [attach](Self::attach) to a hardware queue.
    pub(super) fn new(data: T::QueueData, key: HctxKey) -> Result<NonNull<Self>> {
        let next = ptr::null_mut();
        let queue = KBox::new(Self { data, key, next }, GFP_KERNEL)?;

        Ok(NonNull::from(KBox::leak(queue)))
    }

    /// Attaches the data to a hardware queue.
    ///
    /// # Safety
    ///
    /// `hctx` is valid and has no `driver_data`, and nobody else uses that field. `queue` is from
    /// [`new`](Self::new) or [`RetiredHctxs::take_back`], and the caller passes on its ownership.
    pub(super) unsafe fn attach(hctx: *mut bindings::blk_mq_hw_ctx, queue: NonNull<Self>) {
        // SAFETY: By the safety requirements of this function, `hctx` is valid.
        unsafe { (*hctx).driver_data = queue.as_ptr().cast() };
    }

    /// Detaches the data from a hardware queue, and returns it. Other CPUs may still read it.
    ///
    /// # Safety
    ///
    /// `hctx` is valid and has data attached, and nobody else changes its `driver_data`. The caller
    /// gets the ownership.
    pub(super) unsafe fn detach(hctx: *mut bindings::blk_mq_hw_ctx) -> NonNull<Self> {
        // SAFETY: By the safety requirements of this function, `driver_data` is from `attach`.
        unsafe { NonNull::new_unchecked((*hctx).driver_data.cast()) }
    }

    /// Returns the driver data of a hardware queue.
    ///
    /// # Safety
    ///
    /// `hctx` is valid and has data attached, which is not dropped for `'a`.
    #[inline]
    pub(super) unsafe fn data<'a>(hctx: *const bindings::blk_mq_hw_ctx) -> &'a T::QueueData {
        // SAFETY: By the safety requirements of this function, `driver_data` is valid for `'a`.
        unsafe { &(*(*hctx).driver_data.cast::<Self>()).data }
    }
}

/// Data detached from hardware queues, latest first.
///
/// Before this is dropped, its owner waits for all readers of the data.
///
/// # Invariants
///
/// `self.0` is the head of a list, linked by `next` and terminated by null, of detached
/// [`HwQueue`]s that this owns.
pub(super) struct RetiredHctxs<T: Operations>(*mut HwQueue<T>);

impl<T: Operations> RetiredHctxs<T> {
    /// Creates an empty list.
    pub(super) const fn new() -> Self {
        // INVARIANT: Null is the empty list.
        Self(ptr::null_mut())
    }

    /// Adds the data of a hardware queue.
    ///
    /// # Safety
    ///
    /// `queue` was [detached](HwQueue::detach), and the caller passes on its ownership.
    pub(super) unsafe fn push(&mut self, queue: NonNull<HwQueue<T>>) {
        // SAFETY: By the safety requirements of this function, `queue` is valid. Only the owner
        // accesses `next`.
        unsafe { (&raw mut (*queue.as_ptr()).next).write(self.0) };
        // INVARIANT: By the safety requirements of this function, `queue` is detached and now
        // owned.
        self.0 = queue.as_ptr();
    }

    /// Removes and returns the latest entry with this key. The caller gets the ownership.
    pub(super) fn take_back(&mut self, key: HctxKey) -> Option<NonNull<HwQueue<T>>> {
        let mut link = &raw mut self.0;

        // SAFETY: By the type invariants, each entry is valid, and only `self` accesses the links.
        unsafe {
            while !(*link).is_null() && (**link).key != key {
                link = &raw mut (**link).next;
            }
            let found = NonNull::new(*link)?;
            // INVARIANT: `found` is unlinked; the rest stays linked.
            *link = (*found.as_ptr()).next;
            Some(found)
        }
    }

    /// Takes the whole list, and leaves an empty one.
    pub(super) fn take(&mut self) -> Self {
        // INVARIANT: The entries move to the result.
        Self(core::mem::replace(&mut self.0, ptr::null_mut()))
    }
}

impl<T: Operations> Drop for RetiredHctxs<T> {
    fn drop(&mut self) {
        while !self.0.is_null() {
            // SAFETY: By the type invariants, the entry is from a `KBox` and owned. The owner of
            // the list has waited for all readers.
            let queue = unsafe { KBox::from_raw(self.0) };
            // INVARIANT: The rest of the list is still owned.
            self.0 = queue.next;
        }
    }
}
