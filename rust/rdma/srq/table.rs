// SPDX-License-Identifier: GPL-2.0

//! What is posted to a shared receive queue.

use super::SharedReceiveQueue;
use crate::{
    bindings,
    new_irq_lock,
    rdma::{
        qp::QpContext,
        wr::{
            Complete,
            Operation, //
        },
    },
    sync::IrqLock, //
};
use core::{
    cell::Cell,
    ffi::c_void,
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::Mutex,
    types::Opaque, //
};

/// An operation of some type.
#[derive(Clone, Copy)]
struct SrqEntry {
    slot: NonNull<c_void>,
    ops: &'static SrqEntryOps,
}

/// What can be done with an operation of some type, each once.
struct SrqEntryOps {
    complete: unsafe fn(NonNull<c_void>, *mut bindings::ib_cq, *mut bindings::ib_wc),
    release: unsafe fn(NonNull<c_void>),
}

struct TypedOps<T, E>(PhantomData<(T, E)>);

impl<T: Complete<E>, E: QpContext> TypedOps<T, E> {
    const OPS: SrqEntryOps = SrqEntryOps {
        complete: Self::complete,
        release: Self::release,
    };

    /// # Safety
    ///
    /// `slot` must be that of an `Operation<T>` that nobody else has, and `wc` its
    /// completion, found in `cq`, on a queue pair of context `E`.
    unsafe fn complete(slot: NonNull<c_void>, cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: By the contract.
        unsafe { Operation::<T>::from_posted(slot.cast()).complete::<E>(cq, wc) };
    }

    /// # Safety
    ///
    /// As [`Self::complete`], but for the completion.
    unsafe fn release(slot: NonNull<c_void>) {
        // SAFETY: By the contract.
        drop(unsafe { Operation::<T>::from_posted(slot.cast()) });
    }
}

/// A place in the table, which is the completion entry of what is in it: that comes
/// first, so it has the address of the place.
#[repr(C)]
struct SrqSlot {
    cqe: Opaque<bindings::ib_cqe>,
    entry: Cell<Option<SrqEntry>>,
    /// The next free one, while this one is free.
    next: Cell<Option<NonNull<SrqSlot>>>,
}

/// The free places, linked.
struct FreeList(Option<NonNull<SrqSlot>>);

// SAFETY: The places are not tied to a thread.
unsafe impl Send for FreeList {}

/// A table of the operations that are posted.
///
/// # Invariants
///
/// - The places that `free` links are in `chunks`, and hold nothing. One that was
///   taken off it belongs to who took it, till it is put back.
/// - The chunks stay as long as the table, where they are.
#[pin_data(PinnedDrop)]
pub(super) struct Table {
    #[pin]
    free: IrqLock<FreeList>,
    #[pin]
    chunks: Mutex<KVec<KVec<SrqSlot>>>,
}

// SAFETY: Who may touch a place says the type invariant; operations are `Send`.
unsafe impl Send for Table {}
// SAFETY: As above.
unsafe impl Sync for Table {}

impl Table {
    /// A table without places.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            free <- new_irq_lock!(FreeList(None), "rrdma::srq::Table"),
            chunks <- new_mutex!(KVec::new(), "rrdma::srq::Table"),
        })
    }

    /// Adds so many places, for completions on queue pairs of context `E`, if `make_room`
    /// makes room for as many as there will be then. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; that of `make_room`.
    pub(super) fn grow<E: QpContext>(
        &self,
        count: usize,
        make_room: impl FnOnce(usize) -> Result,
    ) -> Result {
        let mut chunk = KVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            chunk.push(SrqSlot::new::<E>(), GFP_KERNEL)?;
        }
        let mut chunks = self.chunks.lock();
        chunks.reserve(1, GFP_KERNEL)?;
        make_room(total(&chunks).saturating_add(count))?;
        chunks.push(chunk, GFP_KERNEL)?;
        // Linked where they stay.
        for place in chunks.last().into_iter().flatten() {
            self.put_back(NonNull::from(place));
        }
        Ok(())
    }

    /// How many places there are. Sleeps.
    pub(super) fn len(&self) -> usize {
        total(&self.chunks.lock())
    }

    fn take(&self) -> Option<NonNull<SrqSlot>> {
        let mut free = self.free.lock();
        let place = free.0?;
        // SAFETY: By the type invariant; it is the lock's.
        free.0 = unsafe { place.as_ref() }.next.take();
        Some(place)
    }

    fn put_back(&self, place: NonNull<SrqSlot>) {
        let mut free = self.free.lock();
        // SAFETY: By the type invariant; it is the caller's.
        unsafe { place.as_ref() }.next.set(free.0);
        // INVARIANT: It holds nothing.
        free.0 = Some(place);
    }

    /// Takes `operation` while `post` posts a request with the entry that it is given;
    /// on error gives it back.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is no free place; that of `post`.
    ///
    /// # Safety
    ///
    /// `post` must fail, or post a request that completes with the entry, at most once,
    /// on a queue pair of context `E` that is alive and has the queue of this table; by
    /// the drop of the table nothing may be able to complete, or to touch what is posted.
    #[inline]
    pub(super) unsafe fn post<T: Complete<E>, E: QpContext>(
        &self,
        operation: Operation<T>,
        post: impl FnOnce(*mut bindings::ib_cqe) -> Result,
    ) -> Result<(), (Error, Operation<T>)> {
        let Some(entry) = self.take() else {
            return Err((ENOMEM, operation));
        };
        let slot = operation.into_received::<E>();
        // SAFETY: By the type invariant; it was taken off.
        let place = unsafe { entry.as_ref() };
        place.entry.set(Some(SrqEntry {
            slot: slot.cast(),
            ops: &TypedOps::<T, E>::OPS,
        }));
        // Once it is posted, the place is the completion's.
        post(place.cqe.get()).map_err(|error| {
            place.entry.set(None);
            self.put_back(entry);
            // SAFETY: Nothing was posted.
            (error, unsafe { Operation::from_posted(slot) })
        })
    }
}

#[pinned_drop]
impl PinnedDrop for Table {
    fn drop(self: Pin<&mut Self>) {
        for place in self.chunks.lock().iter().flatten() {
            if let Some(entry) = place.entry.take() {
                // SAFETY: By the contract of `post` nobody else has it any more.
                unsafe { (entry.ops.release)(entry.slot) };
            }
        }
    }
}

fn total(chunks: &[KVec<SrqSlot>]) -> usize {
    chunks
        .iter()
        .fold(0, |total, chunk| total.saturating_add(chunk.len()))
}

impl SrqSlot {
    fn new<E: QpContext>() -> Self {
        let cqe = bindings::ib_cqe {
            done: Some(received::<E>),
        };
        Self {
            cqe: Opaque::new(cqe),
            entry: Cell::new(None),
            next: Cell::new(None),
        }
    }
}

/// # Safety
///
/// Called by the core with the completion of what [`Table::post`] posted for `E`.
unsafe extern "C" fn received<E: QpContext>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By the contract; the queue pair of a completion is alive, and holds its shared queue.
    // The entry is the first member of the place.
    let (shared, place) = unsafe {
        (
            SharedReceiveQueue::<E>::of((*(*wc).qp).srq),
            NonNull::new_unchecked((*wc).__bindgen_anon_1.wr_cqe.cast::<SrqSlot>()),
        )
    };
    // SAFETY: By the type invariant of the table; posted, it is the completion's.
    let entry = unsafe { place.as_ref() }.entry.take();
    let Some(entry) = entry else {
        return;
    };
    // The handler may post again, so there is to be room for that.
    shared.table().put_back(place);
    // SAFETY: The place held the operation till now; it is completed this once.
    unsafe { (entry.ops.complete)(entry.slot, cq, wc) };
}
