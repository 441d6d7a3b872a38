// SPDX-License-Identifier: GPL-2.0

//! What can be released only when the queue pair is destroyed.

use crate::{
    bindings,
    new_irq_lock,
    sync::IrqLock, //
};
use core::ops::Deref;
use kernel::prelude::*;

/// Something that the core has for a queue pair, with the memory that it is about.
pub(in crate::rdma) trait Deferred: Send {
    /// Gives back what the core has. The memory stays until this is dropped.
    ///
    /// # Safety
    ///
    /// `qp` must be the queue pair of this, of which nothing is posted, and be destroyed next:
    /// whoever got a region of this would expose his own data. Called at most once.
    unsafe fn release(&mut self, qp: *mut bindings::ib_qp);
}

/// A value that can be deferred without any more memory.
pub(in crate::rdma) struct DeferredEntry<T: ?Sized> {
    next: Option<KBox<DeferredEntry<dyn Deferred>>>,
    value: T,
}

impl<T> DeferredEntry<T> {
    pub(in crate::rdma) fn new(value: T) -> Self {
        Self { next: None, value }
    }

    pub(in crate::rdma) fn into_value(self) -> T {
        self.value
    }
}

impl<T> Deref for DeferredEntry<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// What a queue pair releases when it is destroyed.
///
/// # Invariants
///
/// Each entry is of the queue pair that has this, with nothing posted, and was not released before
/// [`release`](Self::release).
#[pin_data(PinnedDrop)]
pub(in crate::rdma) struct DeferredRelease {
    #[pin]
    first: IrqLock<Option<KBox<DeferredEntry<dyn Deferred>>>>,
}

impl DeferredRelease {
    /// An empty list.
    pub(super) fn new() -> impl PinInit<Self> {
        // INVARIANT: There are none.
        pin_init!(Self {
            first <- new_irq_lock!(None, "rrdma::DeferredRelease"),
        })
    }

    /// Defers the release of this. Any context.
    ///
    /// # Safety
    ///
    /// It must be of the queue pair that has this list, and nothing of it be posted.
    pub(in crate::rdma) unsafe fn add<T: Deferred + 'static>(
        &self,
        mut entry: KBox<DeferredEntry<T>>,
    ) {
        let mut first = self.first.lock();
        entry.next = first.take();
        // INVARIANT: By the contract.
        *first = Some(entry);
    }

    /// Releases them. Their memory stays until this is dropped.
    ///
    /// # Safety
    ///
    /// `qp` must be the queue pair that has this, and be destroyed next. Called once.
    pub(super) unsafe fn release(&self, qp: *mut bindings::ib_qp) {
        let mut first = self.first.lock().take();
        let mut next = first.as_mut();
        while let Some(entry) = next {
            // SAFETY: By the type invariant, which ends here, and the contract.
            unsafe { entry.value.release(qp) };
            next = entry.next.as_mut();
        }
        *self.first.lock() = first;
    }
}

#[pinned_drop]
impl PinnedDrop for DeferredRelease {
    /// One after the other: each would drop the next one, however many there are.
    fn drop(self: Pin<&mut Self>) {
        let mut next = self.first.lock().take();
        while let Some(mut entry) = next {
            next = entry.next.take();
        }
    }
}
