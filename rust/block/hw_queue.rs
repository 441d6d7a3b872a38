// SPDX-License-Identifier: GPL-2.0

//! Hardware queues of disks.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::Operations;
use crate::bindings;
use core::ptr::{
    self,
    NonNull, //
};
use kernel::prelude::*;

/// Which hardware queue it is, of all those that a tag set has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct HctxKey {
    queue: *const bindings::request_queue,
    index: u32,
}

impl HctxKey {
    /// That of a hardware queue.
    ///
    /// # Safety
    ///
    /// `hctx` is valid, and the hardware queue `index` of its disk.
    pub(super) unsafe fn of(hctx: *const bindings::blk_mq_hw_ctx, index: u32) -> Self {
        Self {
            // SAFETY: By the requirements of this function.
            queue: unsafe { (*hctx).queue },
            index,
        }
    }
}

/// What the `driver_data` of a `struct blk_mq_hw_ctx` points to: the driver's data, and
/// a link for when it has been taken off.
///
/// Others may read the data from when it is attached to when it is dropped: there is no
/// reference to the whole in between.
pub(super) struct HwQueue<T: Operations> {
    data: T::QueueData,
    key: HctxKey,
    next: *mut Self,
}

impl<T: Operations> HwQueue<T> {
    /// Makes what is to be [attached](Self::attach) to a hardware queue.
    pub(super) fn new(data: T::QueueData, key: HctxKey) -> Result<NonNull<Self>> {
        let next = ptr::null_mut();
        let queue = KBox::new(Self { data, key, next }, GFP_KERNEL)?;

        Ok(NonNull::from(KBox::leak(queue)))
    }

    /// Hangs it on a hardware queue.
    ///
    /// # Safety
    ///
    /// `hctx` is valid, nobody else uses its `driver_data`, and it has none. `queue` is from
    /// [`new`](Self::new) or [`RetiredHctxs::take_back`], and this owns it.
    pub(super) unsafe fn attach(hctx: *mut bindings::blk_mq_hw_ctx, queue: NonNull<Self>) {
        // SAFETY: By the requirements of this function.
        unsafe { (*hctx).driver_data = queue.as_ptr().cast() };
    }

    /// Takes it off a hardware queue. Others may still read the data.
    ///
    /// # Safety
    ///
    /// `hctx` is valid, nobody else changes its `driver_data`, and it has something
    /// attached, which is the caller's then.
    pub(super) unsafe fn detach(hctx: *mut bindings::blk_mq_hw_ctx) -> NonNull<Self> {
        // SAFETY: By the requirements of this function `driver_data` is from `attach`.
        unsafe { NonNull::new_unchecked((*hctx).driver_data.cast()) }
    }

    /// The driver's data.
    ///
    /// # Safety
    ///
    /// `hctx` is valid and has something attached, which is not dropped for `'a`.
    #[inline]
    pub(super) unsafe fn data<'a>(hctx: *const bindings::blk_mq_hw_ctx) -> &'a T::QueueData {
        // SAFETY: By the requirements of this function.
        unsafe { &(*(*hctx).driver_data.cast::<Self>()).data }
    }
}

/// Hardware queues that have been taken off their disks, the latest first.
///
/// Who may still read their data must be waited for before this is dropped.
///
/// # Invariants
///
/// This is null or, as the `next` of each, an [`HwQueue`] that was detached, and is owned.
pub(super) struct RetiredHctxs<T: Operations>(*mut HwQueue<T>);

impl<T: Operations> RetiredHctxs<T> {
    /// None.
    pub(super) const fn new() -> Self {
        // INVARIANT: It is null.
        Self(ptr::null_mut())
    }

    /// Adds one.
    ///
    /// # Safety
    ///
    /// It was [detached](HwQueue::detach), and is the caller's.
    pub(super) unsafe fn push(&mut self, queue: NonNull<HwQueue<T>>) {
        // SAFETY: By the requirements of this function it is valid, and nobody else gets at
        // the link.
        unsafe { (&raw mut (*queue.as_ptr()).next).write(self.0) };
        // INVARIANT: By the requirements of this function.
        self.0 = queue.as_ptr();
    }

    /// Takes back the latest that was at a place, which is the caller's then.
    pub(super) fn take_back(&mut self, key: HctxKey) -> Option<NonNull<HwQueue<T>>> {
        let mut link = &raw mut self.0;

        // SAFETY: By the type invariants each is valid, and nobody else gets at the links.
        unsafe {
            while !(*link).is_null() && (**link).key != key {
                link = &raw mut (**link).next;
            }
            let found = NonNull::new(*link)?;
            // INVARIANT: The rest of the list.
            *link = (*found.as_ptr()).next;
            Some(found)
        }
    }

    /// Takes them all.
    pub(super) fn take(&mut self) -> Self {
        // INVARIANT: They are that one's.
        Self(core::mem::replace(&mut self.0, ptr::null_mut()))
    }
}

impl<T: Operations> Drop for RetiredHctxs<T> {
    fn drop(&mut self) {
        while !self.0.is_null() {
            // SAFETY: By the type invariants it is from a `KBox`, and owned; nobody reads the
            // data any more.
            let queue = unsafe { KBox::from_raw(self.0) };
            // INVARIANT: The rest of the list.
            self.0 = queue.next;
        }
    }
}
