// SPDX-License-Identifier: GPL-2.0

//! The memory of work requests, and whose it is.

use super::Sge;
use crate::{
    bindings,
    rdma::{
        cq::Completion,
        qp::{
            CqeNode,
            QpContext,
            QueuePair, //
        },
    },
};
use core::{
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::NonNull,
};
use kernel::{
    prelude::*,
    sync::rcu, //
};

/// What happens when an operation completes on a queue pair of context `E`.
///
/// It borrows nothing: once posted it is the device's, for as long as that takes.
pub trait Complete<E: QpContext>: Sized + Send + 'static {
    /// Called once for every time that the operation was posted.
    ///
    /// Runs where the completion queue is polled, see
    /// [`Poll`](crate::rdma::cq::Poll): usually in softirq, where it may not sleep and
    /// may not drop what sleeps then (regions, address handles, the last reference to a
    /// queue pair). What only a part of was posted is completed by the
    /// [drain](QueuePair::drain), in its thread; softirqs are off there if that is
    /// where the queue is polled, so the same holds.
    fn complete(operation: Operation<Self>, queue: &QueuePair<E>, completion: &Completion<'_>);
}

/// An operation that receives into a buffer.
pub trait Receive<E: QpContext>: Complete<E> {
    /// The memory to be filled.
    fn buffer(&self) -> Sge<'_>;
}

/// The entry comes first, so its address is that of the slot.
#[repr(C)]
pub(in crate::rdma) struct Slot<T> {
    entry: CqeNode,
    pub(super) body: T,
}

/// Memory of work requests, in the hands of whoever may touch it.
///
/// # Invariants
///
/// Not posted: no work request names the memory.
pub struct Operation<T>(KBox<Slot<T>>);

impl<T> Operation<T> {
    /// Allocates the operation. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(body: T) -> Result<Self> {
        let slot = Slot {
            entry: CqeNode::new(),
            body,
        };
        Ok(Self(KBox::new(slot, GFP_KERNEL)?))
    }

    /// Takes the operation apart.
    pub fn into_inner(self) -> T {
        KBox::into_inner(self.0).body
    }

    /// Sets the completion entry for a send and gives up the memory.
    #[inline]
    pub(super) fn into_sent<E: QpContext>(self) -> NonNull<Slot<T>>
    where
        T: Complete<E>,
    {
        self.into_posted(sent::<T, E>)
    }

    /// Sets the completion entry for a receive and gives up the memory.
    #[inline]
    pub(in crate::rdma) fn into_received<E: QpContext>(self) -> NonNull<Slot<T>>
    where
        T: Complete<E>,
    {
        self.into_posted(completed::<T, E>)
    }

    #[inline]
    fn into_posted(self, done: Done) -> NonNull<Slot<T>> {
        let slot = KBox::into_raw(self.0);
        // SAFETY: `slot` is a live allocation that we own.
        unsafe {
            (*(*slot).entry.cqe()).done = Some(done);
            NonNull::new_unchecked(slot)
        }
    }

    /// Posts the operation to `queue` with `post`, which is given its body and its
    /// entry. On error that says why, and whether a part was posted nevertheless; the
    /// operation is then partially posted, which is no error here.
    ///
    /// # Safety
    ///
    /// `post` must post requests to `queue` that name nothing but the body and the
    /// entry, and of which just one completes with the entry, after all others; or
    /// fail, and then none may complete with it.
    #[inline]
    pub(in crate::rdma) unsafe fn post_with<E: QpContext>(
        self,
        queue: &QueuePair<E>,
        post: impl FnOnce(&T, *mut bindings::ib_cqe) -> Result<(), (Error, bool)>,
    ) -> Result<(), Unposted<T>>
    where
        T: Complete<E>,
    {
        let slot = self.into_sent::<E>();
        // SAFETY: The slot is a live allocation that nobody else has. Once posted
        // it stays until the completion takes it back; nothing of it is touched
        // below unless posting failed.
        let body = unsafe { &(*slot.as_ptr()).body };
        // A drain waits until what it is to complete is listed as partially posted.
        let _grace = rcu::read_lock();
        match post(body, slot.as_ptr().cast()) {
            Ok(()) => Ok(()),
            Err((error, false)) => Err(Unposted {
                error,
                // SAFETY: By the contract no request completes the slot.
                operation: unsafe { Self::from_posted(slot) },
            }),
            Err((error, true)) => {
                // SAFETY: As above, and the grace period has not ended.
                unsafe { queue.strand(slot.cast(), error) };
                Ok(())
            }
        }
    }

    /// Tells it of its completion.
    ///
    /// # Safety
    ///
    /// `wc` must be that, found in `cq`, on a queue pair made by [`QueuePair<E>`] that is
    /// alive.
    #[inline]
    pub(in crate::rdma) unsafe fn complete<E: QpContext>(
        self,
        cq: *mut bindings::ib_cq,
        wc: *mut bindings::ib_wc,
    ) where
        T: Complete<E>,
    {
        // SAFETY: By the contract.
        let (queue, completion) = unsafe {
            let queue = QueuePair::<E>::of_completion(wc);
            (queue, Completion::from_raw(cq, wc, queue.registrations()))
        };
        T::complete(self, queue, &completion);
    }

    /// # Safety
    ///
    /// `slot` must come from `into_sent` or `into_received`, and no request may name it any more.
    #[inline]
    pub(in crate::rdma) unsafe fn from_posted(slot: NonNull<Slot<T>>) -> Self {
        // SAFETY: By the contract.
        // INVARIANT: As above.
        Self(unsafe { KBox::from_raw(slot.as_ptr()) })
    }
}

impl<T> Deref for Operation<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0.body
    }
}

impl<T> DerefMut for Operation<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.body
    }
}

/// What the core calls with a completion.
type Done = unsafe extern "C" fn(*mut bindings::ib_cq, *mut bindings::ib_wc);

/// The completion of a `Slot<T>` that was sent on a queue pair of context `E`.
///
/// # Safety
///
/// As [`completed`].
unsafe extern "C" fn sent<T: Complete<E>, E: QpContext>(
    cq: *mut bindings::ib_cq,
    wc: *mut bindings::ib_wc,
) {
    // SAFETY: By the contract. The drain of the queue pair waits for the second call
    // of the two, or for what completes after this.
    unsafe {
        let queue = QueuePair::<E>::of_completion(wc);
        completed::<T, E>(cq, wc);
        queue.forget_sends(1);
    }
}

/// The completion of a posted `Slot<T>` on a queue pair of context `E`.
///
/// # Safety
///
/// Called by the core with a completion whose `wr_cqe` is that of a posted
/// `Slot<T>`, of which no other request is posted, on a queue pair that
/// [`QueuePair<E>`] made and that is alive.
unsafe extern "C" fn completed<T: Complete<E>, E: QpContext>(
    cq: *mut bindings::ib_cq,
    wc: *mut bindings::ib_wc,
) {
    // SAFETY: By the contract. The completion entry is the first member of the
    // slot; the context of the queue pair is its `QueuePair<E>`, since only
    // `QueuePair<E>` posts operations with this function.
    unsafe {
        let slot = (*wc).__bindgen_anon_1.wr_cqe.cast::<Slot<T>>();
        Operation::from_posted(NonNull::new_unchecked(slot)).complete::<E>(cq, wc);
    }
}

/// An operation that could not be posted.
pub struct Unposted<T> {
    /// Why.
    pub error: Error,
    /// The memory, back in the caller's hands.
    pub operation: Operation<T>,
}
