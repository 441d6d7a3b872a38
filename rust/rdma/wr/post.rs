// SPDX-License-Identifier: GPL-2.0

//! Posts operations to queue pairs.

use super::{
    operation::Slot,
    wr_buffer::{
        self,
        WrBuffer,
        WrList, //
    },
    Chain,
    Complete,
    Operation,
    Receive,
    Unposted,
    MAX_REQUESTS,
    MAX_SGE, //
};
use crate::{
    bindings,
    errno::ENOTCONN,
    rdma::{
        pd::LocalMemory,
        qp::{
            CqeNode,
            Fault,
            ForCompletion,
            Init,
            QpContext,
            QueuePair,
            Rtr, //
        },
    },
    sync::{RcuReadLock, RcuSection},
};
use core::{
    mem::MaybeUninit,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::prelude::*;

/// Calls `post` with the work request of `receive`, which completes with `cqe`.
///
/// # Errors
///
/// `EINVAL` if the memory is mapped for another device than that of `memory`, or not for writing by the
/// device; the error of `post`.
#[inline(always)]
pub(in crate::rdma) fn with_receive_wr<E: QpContext>(
    receive: &mut impl Receive<E>,
    memory: LocalMemory,
    cqe: *mut bindings::ib_cqe,
    post: impl FnOnce(&bindings::ib_recv_wr) -> Result,
) -> Result {
    if let Some(own) = receive.pieces() {
        return post(&own.work_request(memory, cqe)?);
    }
    let mut piece = receive.buffer().as_sink(memory)?;
    let mut request = bindings::ib_recv_wr {
        sg_list: &mut piece,
        num_sge: 1,
        ..pin_init::zeroed()
    };
    request.__bindgen_anon_1.wr_cqe = cqe;
    post(&request)
}

/// The operations of a list of `length` work requests that the device refused in part. The list begins with
/// `first`.
pub(super) trait PostedOperations: Copy {
    /// Returns the number of the first work request that was not posted; `None` if it is not in the
    /// list. Reads no operation that was posted whole.
    fn position(
        self,
        first: *mut bindings::ib_send_wr,
        length: u32,
        bad: *const bindings::ib_send_wr,
    ) -> Option<u32>;

    /// Returns the last work request. Reads no operation that was posted whole.
    fn last(&self, first: *mut bindings::ib_send_wr, length: u32) -> *mut bindings::ib_send_wr;

    /// Returns the operation of work request number `posted`, if an earlier work request belongs to the
    /// same operation, which then is partially posted.
    fn split(self, posted: u32) -> Option<NonNull<CqeNode>>;
}

/// Reason why a list could not be posted, and the first work request that was not posted; null if the send queue
/// had too few credits for the list.
pub(super) type PostFailure = (Error, *const bindings::ib_send_wr);

/// A single operation. Its last work request completes it, and was not posted, so the list is valid.
#[derive(Clone, Copy)]
struct Single(NonNull<CqeNode>);

impl PostedOperations for Single {
    fn position(
        self,
        first: *mut bindings::ib_send_wr,
        length: u32,
        bad: *const bindings::ib_send_wr,
    ) -> Option<u32> {
        // SAFETY: The list is valid, see the type.
        unsafe { wr_buffer::position(first, length, bad) }
    }

    fn last(&self, first: *mut bindings::ib_send_wr, length: u32) -> *mut bindings::ib_send_wr {
        // SAFETY: The list is valid, see the type.
        unsafe { wr_buffer::at(first, length.saturating_sub(1)) }
    }

    fn split(self, posted: u32) -> Option<NonNull<CqeNode>> {
        (posted != 0).then_some(self.0)
    }
}

impl<E: QpContext> QueuePair<E> {
    /// Posts `operation` with the work requests that `build` creates (`ib_post_send`). Any context.
    ///
    /// The call also succeeds in two cases of failure. In both, the queue pair is
    /// [closed](QueuePair::close), its context gets the [`Fault`], and the operation completes when
    /// the queue pair is drained:
    ///
    /// - [`Fault::Unposted`]: only the first work requests could be posted.
    /// - [`Fault::Stuck`]: the device accepted the work requests, but could not start them.
    ///
    /// # Errors
    ///
    /// Returns the operation with the error; nothing of it was posted:
    ///
    /// - `ENOTCONN`: the queue pair is closed.
    /// - `EINVAL`: `build` created no work request.
    /// - Any error of `build` or of the driver; `ENOMEM` if the send queue is full.
    #[inline]
    pub fn post_send<T: Complete<E>>(
        &self,
        operation: Operation<T>,
        build: impl for<'a> FnOnce(&'a mut T, &mut Chain<'a, '_, E>) -> Result,
    ) -> Result<(), Unposted<T>> {
        self.post_send_within(&RcuReadLock::new(), operation, build)
    }

    /// Posts `operation` as [`post_send`](Self::post_send) does, for callers that are already in an
    /// RCU read-side critical section.
    ///
    /// # Errors
    ///
    /// Those of [`post_send`](Self::post_send).
    // Always inlined: most callers know which work requests `build` creates.
    #[inline(always)]
    pub fn post_send_within<T: Complete<E>>(
        &self,
        section: &RcuSection,
        operation: Operation<T>,
        build: impl for<'a> FnOnce(&'a mut T, &mut Chain<'a, '_, E>) -> Result,
    ) -> Result<(), Unposted<T>> {
        let slot = operation.into_sent::<E>();
        let mut requests = [const { MaybeUninit::uninit() }; MAX_REQUESTS];
        let mut pieces = [const { MaybeUninit::uninit() }; MAX_SGE];
        let empty = WrBuffer::empty(&mut requests, &mut pieces);
        // SAFETY: This function owns the slot, and nothing of it is posted.
        let (wr_buffer, built) = unsafe { self.build(slot, empty, build) };
        let single = Single(slot.cast());
        let result = match built {
            // SAFETY: The work requests are complete. The memory that they name is borrowed from
            // the slot, which is valid until its completion. Below, the slot is accessed only if
            // nothing was posted.
            Ok(()) => unsafe { self.post_requests(section, wr_buffer.list, single) },
            Err(error) => Err((error, 0)),
        };
        let Err((error, posted)) = result else {
            return Ok(());
        };
        if posted != 0 {
            // The operation is partially posted, and completes when the queue pair is drained.
            return Ok(());
        }
        Err(Unposted {
            error,
            // SAFETY: No work request of the slot was posted.
            operation: unsafe { Operation::from_posted(slot) },
        })
    }

    /// Lets `build` append the work requests of the operation in `slot` to `wr_buffer`.
    ///
    /// # Safety
    ///
    /// The caller must own `slot`. It must not access `slot`, nor move the memory of `wr_buffer`,
    /// until the work requests are posted or undone.
    #[inline(always)]
    pub(super) unsafe fn build<'q, T>(
        &'q self,
        slot: NonNull<Slot<T>>,
        wr_buffer: WrBuffer<'q>,
        build: impl for<'a> FnOnce(&'a mut T, &mut Chain<'a, '_, E>) -> Result,
    ) -> (WrBuffer<'q>, Result) {
        let before = wr_buffer.list.len();
        let mut chain = Chain::new(self, slot.as_ptr().cast(), wr_buffer);
        // SAFETY: By the safety requirements the slot is alive, and nobody else has it. By its signature,
        // `build` can keep borrows from the body only in the chain.
        let built = build(unsafe { &mut (*slot.as_ptr()).body }, &mut chain);
        let (wr_buffer, built) = chain.finish(built);
        // `build` only appends.
        let credits = wr_buffer.list.len().wrapping_sub(before);
        // SAFETY: By the safety requirements the slot is alive. The work requests borrow from its
        // body only.
        unsafe { (*slot.as_ptr()).entry.for_completion = ForCompletion { credits } };
        (wr_buffer, built)
    }

    /// Posts a list. On error, returns how many work requests were posted, and undoes the others.
    ///
    /// # Safety
    ///
    /// The work requests must be complete, and the memory that they name must stay valid until they
    /// complete. The last work request of each operation must not change until this returns: a driver
    /// may read its `next` when it has completed. `operations` must be those of the list, and nothing else
    /// may complete one that is partially posted.
    #[inline(always)]
    pub(super) unsafe fn post_requests(
        &self,
        section: &RcuSection,
        list: WrList,
        operations: impl PostedOperations,
    ) -> Result<(), (Error, u32)> {
        // SAFETY: By the safety requirements of this function.
        match unsafe { self.try_post(section, list) } {
            Ok(()) => Ok(()),
            // SAFETY: By the safety requirements of this function.
            Err(failure) => unsafe { self.stop_at(list.first(), list.len(), failure, operations) },
        }
    }

    /// Posts a list.
    ///
    /// # Safety
    ///
    /// Those of [`post_requests`](Self::post_requests). On error, [`stop_at`](Self::stop_at) must be called
    /// with the result, within the same RCU read-side critical section.
    #[inline(always)]
    pub(super) unsafe fn try_post(
        &self,
        section: &RcuSection,
        list: WrList,
    ) -> Result<(), PostFailure> {
        if self.sq_credits.take(list.len()).is_err() {
            return Err((ENOMEM, ptr::null()));
        }
        // A drain waits for the section. So it finds an operation that is partially posted here in
        // the list.
        if let Err(closed) = self.count_sends(list.len(), section) {
            self.sq_credits.put(list.len());
            return Err((closed, ptr::null()));
        }
        // SAFETY: By the safety requirements of this function.
        unsafe { self.post_raw_send(list.first(), section) }
    }

    /// Undoes the work requests of a list from that of `failure` on (`bad`). Those before it were
    /// posted. Returns how many were.
    ///
    /// A device that reports a full queue in spite of the credits does not report what it took; nor does one
    /// whose `bad` is not in the list. All but the last work request may be posted then. The operations of
    /// these are not returned, and the queue pair is closed: an operation that was not posted stays leaked.
    ///
    /// # Safety
    ///
    /// Those of [`post_requests`](Self::post_requests). `failure` must be the result of
    /// [`try_post`](Self::try_post) for this list, within the same RCU read-side critical section.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn stop_at(
        &self,
        first: *mut bindings::ib_send_wr,
        length: u32,
        failure: PostFailure,
        operations: impl PostedOperations,
    ) -> Result<(), (Error, u32)> {
        let (error, bad) = failure;
        if bad.is_null() {
            return Err((self.refuse(first, length), 0));
        }
        let found = match ptr::eq(bad, first) {
            true => Some(0),
            false => operations.position(first, length, bad),
        };
        let position = found.unwrap_or(0);
        let is_unknown = length > 1 && (found.is_none() || error == ENOMEM && position == 0);
        let (posted, unposted_wr) = match (is_unknown, position) {
            (true, _) => (length.saturating_sub(1), operations.last(first, length)),
            (false, 0) => (0, first),
            (false, posted) => (posted, bad.cast_mut()),
        };
        let unposted = length.saturating_sub(posted);
        self.sq_credits.put(unposted);
        self.forget_sends(unposted);
        wr_buffer::undo(unposted_wr, unposted, 0);
        match operations.split(posted) {
            // SAFETY: By the safety requirements nothing else completes the operation. The work
            // request that would complete it was not posted: the post failed, so the last work
            // request was not, whatever the device reports.
            Some(entry) => unsafe { self.strand(entry, error) },
            None if is_unknown => self.fail(error),
            None => {}
        }
        Err((error, posted))
    }

    /// Undoes work requests for which the send queue has no room or which a closed queue pair does not take,
    /// and returns the error.
    #[cold]
    fn refuse(&self, first: *mut bindings::ib_send_wr, length: u32) -> Error {
        wr_buffer::undo(first, length, 0);
        match self.is_closed() {
            true => ENOTCONN,
            false => ENOMEM,
        }
    }

    /// Closes the queue pair, because the device did not post what it should have.
    #[cold]
    fn fail(&self, error: Error) {
        self.close();
        E::faulted(self, Fault::Unposted(error));
    }

    /// Keeps a partially posted operation until the queue pair is drained, and closes the queue
    /// pair.
    ///
    /// # Safety
    ///
    /// `entry` must be that of an operation that nothing else completes. The caller must still be
    /// in the RCU read-side critical section in which the operation was posted.
    #[cold]
    pub(super) unsafe fn strand(&self, entry: NonNull<CqeNode>, error: Error) {
        // SAFETY: By the safety requirements of this function.
        unsafe { self.partially_posted.add(entry) };
        self.fail(error);
    }

    /// Posts a receive (`ib_post_recv`). Any context.
    ///
    /// # Errors
    ///
    /// Returns the operation with the error:
    ///
    /// - `ENOTCONN`: the queue pair is closed.
    /// - `EINVAL`: the queue pair takes its receives from a shared queue, or the buffer is mapped
    ///   for another device or not for writing by the device.
    /// - `ENOMEM`: as many receives are posted as the [`QpCap`](crate::rdma::qp::QpCap) has.
    /// - Any error of the driver.
    #[inline(always)]
    pub fn post_receive<T: Receive<E>>(&self, operation: Operation<T>) -> Result<(), Unposted<T>> {
        self.post_receive_within(&RcuReadLock::new(), operation)
    }

    /// Posts a receive as [`post_receive`](Self::post_receive) does, for callers that are already in an
    /// RCU read-side critical section.
    ///
    /// # Errors
    ///
    /// Those of [`post_receive`](Self::post_receive).
    // Always inlined: hosts post a receive for each I/O.
    #[inline(always)]
    pub fn post_receive_within<T: Receive<E>>(
        &self,
        section: &RcuSection,
        operation: Operation<T>,
    ) -> Result<(), Unposted<T>> {
        if let Err(error) = self.take_receive_credit() {
            return Err(Unposted { error, operation });
        }
        let slot = operation.into_received::<E>();
        // SAFETY: The slot is a live allocation that nobody else has.
        let body = unsafe { &mut (*slot.as_ptr()).body };
        let (memory, cqe) = (self.local_memory(), slot.as_ptr().cast());
        let post = |request: &bindings::ib_recv_wr| {
            // SAFETY: The work request is well-formed. The memory that it names belongs to the slot,
            // which is valid until its completion.
            unsafe { self.post_raw_receive(request, section) }
        };
        let result = with_receive_wr(body, memory, cqe, post);
        result.map_err(|error| {
            self.rq_credits.put(1);
            Unposted {
                error,
                // SAFETY: The work request was not posted.
                operation: unsafe { Operation::from_posted(slot) },
            }
        })
    }
}

impl<E: QpContext> Init<E> {
    /// Posts a receive. Any context.
    ///
    /// # Errors
    ///
    /// Those of [`QueuePair::post_receive`].
    pub fn post_receive<T: Receive<E>>(&self, operation: Operation<T>) -> Result<(), Unposted<T>> {
        self.queue.post_receive(operation)
    }
}

impl<E: QpContext> Rtr<E> {
    /// Posts a receive. Any context.
    ///
    /// # Errors
    ///
    /// Those of [`QueuePair::post_receive`].
    pub fn post_receive<T: Receive<E>>(&self, operation: Operation<T>) -> Result<(), Unposted<T>> {
        self.queue.post_receive(operation)
    }
}
