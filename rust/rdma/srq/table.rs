// SPDX-License-Identifier: GPL-2.0

//! Operations that are posted to a shared receive queue.

use super::OwnedSrq;
use crate::{
    bindings, new_irq_lock,
    rdma::{
        qp::{
            QpContext,
            QueuePair, //
        },
        wr::{
            Complete,
            Operation, //
        },
    },
    sync::{
        new_mutex,
        IrqLock, //
    },
};
use core::{
    cell::Cell,
    ffi::c_void,
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::Mutex,
    types::Opaque, //
};

/// An operation without its type.
#[derive(Clone, Copy)]
struct SrqEntry {
    slot: NonNull<c_void>,
    ops: &'static SrqEntryOps,
}

/// Functions for an operation of one type. One of them is called, once.
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

    /// Completes the operation.
    /// # Safety
    ///
    /// `slot` must be that of an `Operation<T>` that nobody else uses. `wc` must be its completion,
    /// found in `cq`, on a queue pair with context `E`.
    unsafe fn complete(slot: NonNull<c_void>, cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: By the safety requirements of this function.
        unsafe {
            let queue = QueuePair::<E>::of_completion(wc);
            Operation::<T>::from_posted(slot.cast()).complete::<E>(queue, cq, wc);
        }
    }

    /// Drops the operation.
    /// # Safety
    ///
    /// `slot` must be that of an `Operation<T>` that nobody else uses.
    unsafe fn release(slot: NonNull<c_void>) {
        // SAFETY: By the safety requirements of this function.
        drop(unsafe { Operation::<T>::from_posted(slot.cast()) });
    }
}

/// A slot of the table for one posted operation. `cqe` is the first member, so it has the address
/// of the slot.
#[repr(C)]
struct SrqSlot {
    cqe: Opaque<bindings::ib_cqe>,
    entry: Cell<Option<SrqEntry>>,
    /// Next free slot, while this one is free.
    next: Cell<Option<NonNull<SrqSlot>>>,
}

/// List of the free slots.
struct FreeList(Option<NonNull<SrqSlot>>);

// SAFETY: Slots are not bound to a thread.
unsafe impl Send for FreeList {}

/// Table of posted operations.
///
/// # Invariants
///
/// - The slots in `free` are in `chunks`, and hold no operation. A slot that was taken from `free`
///   belongs to the taker until it is put back.
/// - The chunks live as long as the table, and do not move.
#[pin_data(PinnedDrop)]
pub(super) struct Table {
    #[pin]
    free: IrqLock<FreeList>,
    #[pin]
    chunks: Mutex<KVec<KVec<SrqSlot>>>,
}

// SAFETY: By the type invariants a slot is accessed by one thread at a time. Operations are `Send`.
unsafe impl Send for Table {}
// SAFETY: By the type invariants a slot is accessed by one thread at a time. Locks protect the
// rest.
unsafe impl Sync for Table {}

impl Table {
    /// Creates a table without slots.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            free <- new_irq_lock!(FreeList(None), "rrdma::srq::Table"),
            chunks <- new_mutex!(KVec::new(), "rrdma::srq::Table"),
        })
    }

    /// Adds `count` slots, for completions on queue pairs with context `E`. First calls `make_room`
    /// with the new total, to resize the queue. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the error of `make_room`.
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
        // Linked only now, at the final addresses.
        for place in chunks.last().into_iter().flatten() {
            self.put_back(NonNull::from(place));
        }
        Ok(())
    }

    /// Returns the number of slots. May sleep.
    pub(super) fn len(&self) -> usize {
        total(&self.chunks.lock())
    }

    #[inline]
    fn take(&self) -> Option<NonNull<SrqSlot>> {
        let mut free = self.free.lock();
        let place = free.0?;
        // SAFETY: By the type invariants a slot in `free` is valid, and belongs to the holder of
        // the lock.
        free.0 = unsafe { place.as_ref() }.next.take();
        Some(place)
    }

    fn put_back(&self, place: NonNull<SrqSlot>) {
        let mut free = self.free.lock();
        // SAFETY: By the type invariants the slot is valid, and belongs to the caller.
        unsafe { place.as_ref() }.next.set(free.0);
        // INVARIANT: The slot holds no operation, and the caller gives it up.
        free.0 = Some(place);
    }

    /// Stores `operation` in a free slot, and calls `post` with its body and the completion entry of the
    /// slot.
    /// On error, returns the operation.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if no slot is free, or the error of `post`.
    ///
    /// # Safety
    ///
    /// - `post` must fail, or post a work request that completes at most once, with the entry.
    /// - The completion must be on a queue pair with context `E` that is alive and uses the queue
    ///   of this table.
    /// - When the table is dropped, no posted work request may complete, nor access its memory.
    #[inline(always)]
    pub(super) unsafe fn post<T: Complete<E>, E: QpContext>(
        &self,
        operation: Operation<T>,
        post: impl FnOnce(&mut T, *mut bindings::ib_cqe) -> Result,
    ) -> Result<(), (Error, Operation<T>)> {
        let Some(entry) = self.take() else {
            return Err((ENOMEM, operation));
        };
        let slot = operation.into_received::<E>();
        // SAFETY: By the type invariants the slot is valid, and belongs to this function.
        let place = unsafe { entry.as_ref() };
        place.entry.set(Some(SrqEntry {
            slot: slot.cast(),
            ops: &TypedOps::<T, E>::OPS,
        }));
        // Once posted, the slot belongs to the completion.
        //
        // SAFETY: The slot is a result of `into_received`. Nobody else uses it until it is posted.
        let body = unsafe { Operation::body_of(slot) };
        post(body, place.cqe.get()).map_err(|error| {
            place.entry.set(None);
            self.put_back(entry);
            // SAFETY: The work request was not posted.
            (error, unsafe { Operation::from_posted(slot) })
        })
    }
}

#[pinned_drop]
impl PinnedDrop for Table {
    fn drop(self: Pin<&mut Self>) {
        for place in self.chunks.lock().iter().flatten() {
            if let Some(entry) = place.entry.take() {
                // SAFETY: By the safety requirements of `post` nobody else uses the operation any
                // more.
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

/// Completes a receive.
/// # Safety
///
/// Called by the core with the completion of a work request posted by [`Table::post`] for `E`.
unsafe extern "C" fn received<E: QpContext>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By the safety requirements. The queue pair of a completion is alive, and holds a
    // reference to its shared receive queue. The completion entry is the first member of the slot.
    let (shared, place) = unsafe {
        (
            OwnedSrq::<E>::of((*(*wc).qp).srq),
            NonNull::new_unchecked((*wc).__bindgen_anon_1.wr_cqe.cast::<SrqSlot>()),
        )
    };
    // SAFETY: By the type invariants of the table, a posted slot is valid and belongs to its
    // completion.
    let entry = unsafe { place.as_ref() }.entry.take();
    let Some(entry) = entry else {
        return;
    };
    // Put the slot back first, as the handler may post again and need it.
    shared.table.put_back(place);
    // SAFETY: The slot owned the operation until it was taken above. It is completed only here.
    unsafe { (entry.ops.complete)(entry.slot, cq, wc) };
}
