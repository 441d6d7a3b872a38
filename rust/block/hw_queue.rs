// SPDX-License-Identifier: GPL-2.0

//! Hardware queues of disks.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::Operations;
use crate::bindings;
use kernel::prelude::*;

/// What the `driver_data` of a `struct blk_mq_hw_ctx` points to: the driver's data, and
/// a link for when it has been taken off.
pub(super) struct HwQueue<T: Operations> {
    data: T::QueueData,
    next: Option<KBox<Self>>,
}

impl<T: Operations> HwQueue<T> {
    /// Hangs the data on a hardware queue.
    ///
    /// # Safety
    ///
    /// `hctx` is valid, nobody else uses its `driver_data`, and it has no data.
    pub(super) unsafe fn attach(hctx: *mut bindings::blk_mq_hw_ctx, data: T::QueueData) -> Result {
        let queue = KBox::new(Self { data, next: None }, GFP_KERNEL)?;

        // SAFETY: By the requirements of this function.
        unsafe { (*hctx).driver_data = KBox::into_raw(queue).cast() };
        Ok(())
    }

    /// Takes the data off a hardware queue.
    ///
    /// # Safety
    ///
    /// `hctx` is valid, nobody else changes its `driver_data`, and it has data. Who may
    /// still use the data must be waited for before it is dropped.
    pub(super) unsafe fn detach(hctx: *mut bindings::blk_mq_hw_ctx) -> KBox<Self> {
        // SAFETY: By the requirements of this function `driver_data` is from `attach`.
        unsafe { KBox::from_raw((*hctx).driver_data.cast()) }
    }

    /// The driver's data.
    ///
    /// # Safety
    ///
    /// `hctx` is valid and has data, which is not dropped for `'a`.
    #[inline]
    pub(super) unsafe fn data<'a>(hctx: *const bindings::blk_mq_hw_ctx) -> &'a T::QueueData {
        // SAFETY: By the requirements of this function.
        unsafe { &(*(*hctx).driver_data.cast::<Self>()).data }
    }
}

/// Hardware queues that have been taken off their disks.
pub(super) struct Retired<T: Operations>(Option<KBox<HwQueue<T>>>);

impl<T: Operations> Retired<T> {
    /// None.
    pub(super) const fn new() -> Self {
        Self(None)
    }

    /// Adds one.
    pub(super) fn push(&mut self, mut queue: KBox<HwQueue<T>>) {
        queue.next = self.0.take();
        self.0 = Some(queue);
    }

    /// Takes them all.
    pub(super) fn take(&mut self) -> Self {
        Self(self.0.take())
    }
}

impl<T: Operations> Drop for Retired<T> {
    /// One by one: left to itself the list would be dropped by recursion.
    fn drop(&mut self) {
        while let Some(mut queue) = self.0.take() {
            self.0 = queue.next.take();
        }
    }
}
