// SPDX-License-Identifier: GPL-2.0

//! Memory of work requests, and its ownership.

use super::{
    ReceivePieces,
    Sge, //
};
use crate::{
    bindings,
    errno::ENOTCONN,
    memory::{
        ChunkBox,
        Chunks, //
    },
    rdma::{
        cq::Completion,
        qp::{
            CqeNode,
            ForCompletion,
            QpContext,
            QueuePair, //
        },
    },
    sync::RcuSection,
};
use core::{
    cell::Cell,
    mem::offset_of,
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::NonNull,
};
use kernel::prelude::*;

/// Completion handler of an operation on a queue pair with context `E`.
///
/// An operation is `'static`: once posted, it belongs to the device for an unlimited time.
pub trait Complete<E: QpContext>: Sized + Send + 'static {
    /// Handles the completion of the operation, successful or flushed. Called once for each post.
    ///
    /// Runs in the context in which the completion queue is polled, see
    /// [`Poll`](crate::rdma::cq::Poll). That usually is a softirq. Then it must not sleep, nor drop
    /// anything whose drop sleeps: regions, address handles, the last reference to a queue pair.
    ///
    /// The [drain](QueuePair::drain) completes partially posted operations in its own thread. It
    /// disables softirqs if the completion queue is polled in a softirq, so the same rules hold.
    fn complete(operation: Operation<Self>, queue: &QueuePair<E>, completion: &Completion<'_>);
}

/// An operation that receives into a buffer.
pub trait Receive<E: QpContext>: Complete<E> {
    /// Returns the memory that the device fills.
    fn buffer(&self) -> Sge<'_>;

    /// Returns the pieces of the memory that the device fills, in place of [`buffer`](Self::buffer), if the
    /// operation is posted repeatedly; `None` by default.
    #[inline]
    fn pieces(&mut self) -> Option<ReceivePieces<'_>> {
        None
    }
}

/// Memory of an operation. `entry` is the first member, so both have the same address.
#[repr(C)]
pub(in crate::rdma) struct Slot<T> {
    pub(super) entry: CqeNode,
    pub(super) body: T,
}

/// Memory of work requests, owned by the holder while it is not posted.
///
/// # Invariants
///
/// No posted work request names the memory.
pub struct Operation<T>(ChunkBox<Slot<T>>);

/// Allocates operations in chunks of several. Each is freed on its own; the memory of a chunk when the
/// last of its operations is.
pub struct Operations<T>(Chunks<Slot<T>>);

impl<T> Operations<T> {
    /// Returns an allocator for about `count` operations. Allocates nothing yet.
    pub fn with_capacity(count: usize) -> Self {
        Self(Chunks::with_capacity(count))
    }

    /// Allocates an operation. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the error of `body`.
    #[inline]
    pub fn push<E>(&mut self, body: impl Init<T, E>) -> Result<Operation<T>>
    where
        Error: From<E>,
    {
        let slot = try_init!(Slot {
            entry: CqeNode::new(),
            body <- body,
        }? E);
        Ok(Operation(self.0.push(slot)?))
    }
}

impl<T> Operation<T> {
    /// Allocates the operation. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(body: T) -> Result<Self> {
        Operations::with_capacity(1).push(body)
    }

    /// Returns the body, and frees the rest. Any context.
    pub fn into_inner(self) -> T {
        self.0.into_inner().body
    }

    /// Passes the ownership to the caller, with the address of the body. Any context.
    #[inline]
    pub fn into_raw(self) -> NonNull<T> {
        let slot = self.0.into_raw();
        // SAFETY: The body is within the slot.
        unsafe { slot.byte_add(offset_of!(Slot<T>, body)).cast() }
    }

    /// Takes the ownership back. Any context.
    ///
    /// # Safety
    ///
    /// `body` must be a result of [`into_raw`](Self::into_raw), whose ownership the caller has.
    #[inline]
    pub unsafe fn from_raw(body: NonNull<T>) -> Self {
        // SAFETY: By the safety requirements, the body is within a slot.
        let slot = unsafe { body.byte_sub(offset_of!(Slot<T>, body)).cast() };
        // SAFETY: By the safety requirements.
        // INVARIANT: It was not posted since `into_raw`.
        Self(unsafe { ChunkBox::from_raw(slot) })
    }

    /// Sets the completion function for a send, and passes the ownership to the caller.
    #[inline]
    pub(super) fn into_sent<E: QpContext>(self) -> NonNull<Slot<T>>
    where
        T: Complete<E>,
    {
        self.into_posted(sent::<T, E>)
    }

    /// Sets the completion function for a receive, and passes the ownership to the caller.
    #[inline]
    pub(in crate::rdma) fn into_received<E: QpContext>(self) -> NonNull<Slot<T>>
    where
        T: Complete<E>,
    {
        self.into_posted(received::<T, E>)
    }

    /// Sets the completion function, and passes the ownership to the caller.
    #[inline]
    pub(super) fn into_posted(self, done: Done) -> NonNull<Slot<T>> {
        let slot = self.0.into_raw();
        // SAFETY: `slot` is a live allocation that this function owns.
        unsafe { (*slot.as_ref().entry.cqe()).done = Some(done) };
        slot
    }

    /// Prepares the operation to be posted as a send with its own credits, and passes the ownership to
    /// the caller, until [`end_post`](Self::end_post).
    // Not one function with a closure that posts: the compiler would call that.
    #[inline(always)]
    pub(in crate::rdma) fn begin_post<E: QpContext>(self) -> NonNull<Slot<T>>
    where
        T: Complete<E>,
    {
        // No credits are returned.
        self.begin_post_with(completed::<T, E>)
    }

    /// Prepares the operation to be posted as [`begin_post`](Self::begin_post) does, and to be completed by
    /// `done`.
    #[inline(always)]
    pub(in crate::rdma) fn begin_post_with(self, done: Done) -> NonNull<Slot<T>> {
        self.into_posted(done)
    }

    /// Sets the flag that [`set_failed`](Self::set_failed) sets.
    ///
    /// # Safety
    ///
    /// `slot` must be a result of [`begin_post_with`](Self::begin_post_with) that is not posted.
    #[inline(always)]
    pub(in crate::rdma) unsafe fn set_failed_flag(slot: NonNull<Slot<T>>, failed: &Cell<bool>) {
        // SAFETY: By the safety requirements, nobody else uses the entry.
        unsafe { (*slot.as_ptr()).entry.for_completion = ForCompletion { failed } };
    }

    /// Sets the flag of an operation that has failed.
    ///
    /// # Safety
    ///
    /// `slot` must be that of an operation that completes, whose flag was set by
    /// [`set_failed_flag`](Self::set_failed_flag) and is still valid.
    #[inline(always)]
    pub(in crate::rdma) unsafe fn set_failed(slot: NonNull<Slot<T>>) {
        // SAFETY: By the safety requirements.
        unsafe { (*(*slot.as_ptr()).entry.for_completion.failed).set(true) };
    }

    /// Returns the body of an operation, for its work requests.
    ///
    /// # Safety
    ///
    /// - `slot` must be a result of [`begin_post`](Self::begin_post) or
    ///   [`begin_post_with`](Self::begin_post_with).
    /// - The caller must use no other reference to the body while it uses the result.
    /// - The result must not be used once the operation may have completed.
    #[inline(always)]
    pub(in crate::rdma) unsafe fn sent_body_of<'a>(slot: NonNull<Slot<T>>) -> &'a mut T {
        // SAFETY: By the safety requirements, the slot is valid and the reference is the only one.
        unsafe { &mut (*slot.as_ptr()).body }
    }

    /// Ends the posting of an operation. The error of `posted` has an errno, and whether some work
    /// requests were posted. If so, the operation is partially posted, and this function succeeds.
    /// Otherwise it returns the operation.
    ///
    /// # Safety
    ///
    /// `slot` must be a result of [`begin_post`](Self::begin_post) or
    /// [`begin_post_with`](Self::begin_post_with), with which the caller has posted to `queue` since
    /// `_section` began:
    ///
    /// - The work requests may name only the body and the entry.
    /// - If it succeeded, exactly one of them must complete with the entry, after all the others.
    /// - If it failed, none of them may complete with the entry.
    #[inline(always)]
    pub(in crate::rdma) unsafe fn end_post<E: QpContext>(
        slot: NonNull<Slot<T>>,
        queue: &QueuePair<E>,
        posted: Result<(), (Error, bool)>,
        _section: &RcuSection,
    ) -> Result<(), Unposted<T>>
    where
        T: Complete<E>,
    {
        match posted {
            Ok(()) => Ok(()),
            Err((error, false)) => Err(Unposted {
                error,
                // SAFETY: By the safety requirements no work request completes with the entry.
                operation: unsafe { Self::from_posted(slot) },
            }),
            Err((error, true)) => {
                // SAFETY: By the safety requirements no work request completes with the entry. A drain
                // waits for `_section`, so it completes this operation.
                unsafe { queue.strand(slot.cast(), error) };
                Ok(())
            }
        }
    }

    /// Calls the completion handler of the operation.
    ///
    /// # Safety
    ///
    /// `wc` must be the completion of the operation, found in `cq`, on `queue`.
    #[inline]
    pub(in crate::rdma) unsafe fn complete<E: QpContext>(
        self,
        queue: &QueuePair<E>,
        cq: *mut bindings::ib_cq,
        wc: *mut bindings::ib_wc,
    ) where
        T: Complete<E>,
    {
        // SAFETY: By the safety requirements of this function.
        let completion = unsafe { Completion::from_raw(cq, wc, &queue.registrations) };
        T::complete(self, queue, &completion);
    }

    /// Returns the body of an operation that is about to be posted.
    ///
    /// # Safety
    ///
    /// `slot` must be a result of `into_received`, and nobody else may use it for `'a`.
    #[inline]
    pub(in crate::rdma) unsafe fn body_of<'a>(slot: NonNull<Slot<T>>) -> &'a mut T {
        // SAFETY: By the safety requirements of this function.
        unsafe { &mut (*slot.as_ptr()).body }
    }

    /// Takes the ownership of the operation back.
    ///
    /// # Safety
    ///
    /// `slot` must be a result of `into_sent`, `into_received`, `into_posted` or `begin_post_with`, and no posted
    /// work request may name it.
    #[inline]
    pub(in crate::rdma) unsafe fn from_posted(slot: NonNull<Slot<T>>) -> Self {
        // SAFETY: `slot` comes from `ChunkBox::into_raw` in `into_posted`, by the safety requirements.
        // INVARIANT: By the safety requirements no posted work request names it.
        Self(unsafe { ChunkBox::from_raw(slot) })
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

/// Completion function of a `struct ib_cqe`.
pub(in crate::rdma) type Done = unsafe extern "C" fn(*mut bindings::ib_cq, *mut bindings::ib_wc);

/// Completes a `Slot<T>` that was sent on a queue pair with context `E`.
///
/// # Safety
///
/// As [`completed`].
unsafe extern "C" fn sent<T: Complete<E>, E: QpContext>(
    cq: *mut bindings::ib_cq,
    wc: *mut bindings::ib_wc,
) {
    // SAFETY: By the safety requirements. The queue pair is alive until `forget_sends` returns: the
    // drain waits for that call if the service counts sends, and else for the marker, which
    // completes later.
    unsafe {
        let queue = QueuePair::<E>::of_completion(wc);
        let slot = (*wc).__bindgen_anon_1.wr_cqe.cast::<Slot<T>>();
        // Returned first, as the handler may post again and need them.
        queue.sq_credits.put((*slot).entry.for_completion.credits);
        Operation::from_posted(NonNull::new_unchecked(slot)).complete::<E>(queue, cq, wc);
        queue.forget_sends(1);
    }
}

/// Completes a `Slot<T>` that was posted as a receive on a queue pair with context `E`.
///
/// # Safety
///
/// As [`completed`].
unsafe extern "C" fn received<T: Complete<E>, E: QpContext>(
    cq: *mut bindings::ib_cq,
    wc: *mut bindings::ib_wc,
) {
    // SAFETY: As in `completed`.
    unsafe {
        let queue = QueuePair::<E>::of_completion(wc);
        let slot = (*wc).__bindgen_anon_1.wr_cqe.cast::<Slot<T>>();
        // Returned first, as the handler may post again and need it.
        queue.rq_credits.put(1);
        Operation::from_posted(NonNull::new_unchecked(slot)).complete::<E>(queue, cq, wc);
    }
}

/// Completes a posted `Slot<T>` on a queue pair with context `E`.
///
/// # Safety
///
/// Called by the core with a completion whose `wr_cqe` is that of a posted `Slot<T>`. No other work
/// request of the slot may be posted. The queue pair must be alive and created as [`QueuePair<E>`].
unsafe extern "C" fn completed<T: Complete<E>, E: QpContext>(
    cq: *mut bindings::ib_cq,
    wc: *mut bindings::ib_wc,
) {
    // SAFETY: By the safety requirements. The completion entry is the first member of the slot.
    // Only `QueuePair<E>` posts operations with this function, so the queue pair's context is its
    // own.
    unsafe {
        let queue = QueuePair::<E>::of_completion(wc);
        let slot = (*wc).__bindgen_anon_1.wr_cqe.cast::<Slot<T>>();
        Operation::from_posted(NonNull::new_unchecked(slot)).complete::<E>(queue, cq, wc);
    }
}

/// An operation that could not be posted, returned to the caller.
pub struct Unposted<T> {
    /// The error.
    pub error: Error,
    /// The operation, owned by the caller again.
    pub operation: Operation<T>,
}

/// Reason why an operation could not be posted.
pub enum Refusal {
    /// The queue pair is closed: it ends, or has ended.
    Closed,
    /// The device, or the caller, made an error.
    Failed(Error),
}

impl<T> Unposted<T> {
    /// Returns the reason. Any context.
    pub fn refusal(&self) -> Refusal {
        match self.error {
            error if error == ENOTCONN => Refusal::Closed,
            error => Refusal::Failed(error),
        }
    }
}
