// SPDX-License-Identifier: GPL-2.0

//! Resources whose release waits until their queue pair is destroyed.
//!
//! An RDMA read that failed on iWARP leaves its region valid for the peer, see
//! [`RdmaRw::finish`](crate::rdma::rw::RdmaRw::finish). The region must not return to the queue
//! pair's pool while the queue pair can still use it.
//!
//! The core unmaps the memory before it deregisters the region. The peer can write to the region in
//! between if it has another queue pair in the same protection domain. With an IOMMU or bounce
//! buffers, the address may have another user by then.

use crate::{
    bindings,
    new_irq_lock,
    sync::IrqLock, //
};
use kernel::prelude::*;

/// A resource of the core that belongs to a queue pair, with the memory that it names.
pub(in crate::rdma) trait Deferred: Send {
    /// Returns the resource to the core. The memory stays valid until `self` is dropped.
    ///
    /// # Safety
    ///
    /// - Called at most once.
    /// - `qp` must be the queue pair of the resource, with nothing posted, and must be destroyed
    ///   next. An operation that took the region from the pool of `qp` would expose its data to the
    ///   old key.
    unsafe fn release(&mut self, qp: *mut bindings::ib_qp);
}

/// A list entry with the value, so that deferring a release does not allocate memory.
pub(in crate::rdma) struct DeferredEntry<T: ?Sized> {
    next: Option<KBox<DeferredEntry<dyn Deferred>>>,
    pub(in crate::rdma) value: T,
}

impl<T> DeferredEntry<T> {
    pub(in crate::rdma) fn new(value: T) -> Self {
        Self { next: None, value }
    }
}

/// Resources that a queue pair releases when it is destroyed.
///
/// # Invariants
///
/// Each entry belongs to the queue pair that owns this list. Nothing of an entry is posted, and it
/// was not released before [`release`](Self::release).
#[pin_data(PinnedDrop)]
pub(in crate::rdma) struct DeferredRelease {
    #[pin]
    first: IrqLock<Option<KBox<DeferredEntry<dyn Deferred>>>>,
}

impl DeferredRelease {
    /// Creates an empty list.
    pub(super) fn new() -> impl PinInit<Self> {
        // INVARIANT: The list is empty.
        pin_init!(Self {
            first <- new_irq_lock!(None, "rrdma::DeferredRelease"),
        })
    }

    /// Defers the release of `entry`. Any context.
    ///
    /// # Safety
    ///
    /// `entry` must belong to the queue pair that owns this list, and nothing of it may be posted.
    pub(in crate::rdma) unsafe fn add<T: Deferred + 'static>(
        &self,
        mut entry: KBox<DeferredEntry<T>>,
    ) {
        let mut first = self.first.lock();
        entry.next = first.take();
        // INVARIANT: By the safety requirements of this function.
        *first = Some(entry);
    }

    /// Releases all entries. Their memory stays valid until the list is dropped.
    ///
    /// # Safety
    ///
    /// Called once. `qp` must be the queue pair that owns this list, and must be destroyed next.
    pub(super) unsafe fn release(&self, qp: *mut bindings::ib_qp) {
        let mut list = self.take();
        // SAFETY: By the safety requirements of this function.
        unsafe { list.release(qp) };
        *self.first.lock() = list.0.take();
    }

    /// Takes all entries. Any context.
    pub(super) fn take(&self) -> DeferredList {
        // INVARIANT: By the type invariants.
        DeferredList(self.first.lock().take())
    }
}

#[pinned_drop]
impl PinnedDrop for DeferredRelease {
    fn drop(self: Pin<&mut Self>) {
        drop(self.take());
    }
}

/// Resources of a queue pair that is destroyed later.
///
/// # Invariants
///
/// Those of [`DeferredRelease`].
pub(super) struct DeferredList(Option<KBox<DeferredEntry<dyn Deferred>>>);

impl DeferredList {
    /// Releases all entries. Their memory stays valid until the list is dropped.
    ///
    /// # Safety
    ///
    /// Those of [`DeferredRelease::release`].
    pub(super) unsafe fn release(&mut self, qp: *mut bindings::ib_qp) {
        let mut next = self.0.as_mut();
        while let Some(entry) = next {
            // SAFETY: By the type invariant the entry belongs to `qp`, and was not released before.
            // The rest are the safety requirements of this function.
            unsafe { entry.value.release(qp) };
            next = entry.next.as_mut();
        }
    }
}

impl Drop for DeferredList {
    /// Drops the entries in a loop. The drop of the first one would recurse into all others,
    /// however many there are, and overflow the stack.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut entry) = next {
            next = entry.next.take();
        }
    }
}
