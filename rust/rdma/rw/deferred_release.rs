// SPDX-License-Identifier: GPL-2.0

//! Transfers that nobody gets back, whose peer may still write to the data.

use super::{
    destroy,
    Work, //
};
use crate::{
    new_irq_lock,
    rdma::{
        dma::Direction,
        qp::{
            QpContext,
            QueuePair, //
        },
    },
    sync::IrqLock, //
};
use kernel::prelude::*;

/// Data, and what the core works on for it; both can be kept without any more memory.
pub(super) struct RwContext<D: ?Sized> {
    pub(super) next: Option<KBox<RwContext<dyn Send>>>,
    pub(super) work: Pin<KBox<Work>>,
    pub(super) direction: Direction,
    pub(super) data: D,
}

/// What is kept of a queue pair.
///
/// # Invariants
///
/// The work of each is initialised for the queue pair, in the direction of the parcel and with the
/// memory of its data, until [`release`](Self::release).
#[pin_data(PinnedDrop)]
pub(in crate::rdma) struct DeferredRelease {
    #[pin]
    first: IrqLock<Option<KBox<RwContext<dyn Send>>>>,
}

impl DeferredRelease {
    /// Nothing is.
    pub(in crate::rdma) fn new() -> impl PinInit<Self> {
        // INVARIANT: An empty list.
        pin_init!(Self {
            first <- new_irq_lock!(None, "rrdma::DeferredRelease"),
        })
    }

    /// Keeps this. Any context.
    ///
    /// # Safety
    ///
    /// The parcel must be as the type invariants say, and nothing of it be posted.
    pub(super) unsafe fn add<D: Send + 'static>(&self, mut rw_context: KBox<RwContext<D>>) {
        let mut first = self.first.lock();
        rw_context.next = first.take();
        // INVARIANT: By the contract.
        *first = Some(rw_context);
    }

    /// Gives back what the core has for them. The data stays until this is dropped.
    ///
    /// # Safety
    ///
    /// `queue` must be the queue pair of this, which is destroyed next: whoever got a region of one of
    /// them would expose his own data.
    pub(in crate::rdma) unsafe fn release<E: QpContext>(&self, queue: &QueuePair<E>) {
        let mut first = self.first.lock().take();
        let mut next = first.as_mut();
        while let Some(rw_context) = next {
            // SAFETY: By the type invariants, which end here, and the contract.
            unsafe { destroy(&rw_context.work, queue, rw_context.direction) };
            next = rw_context.next.as_mut();
        }
        *self.first.lock() = first;
    }
}

#[pinned_drop]
impl PinnedDrop for DeferredRelease {
    /// One after the other: each would drop the next one, however many there are.
    fn drop(self: Pin<&mut Self>) {
        let mut next = self.first.lock().take();
        while let Some(mut rw_context) = next {
            next = rw_context.next.take();
        }
    }
}
