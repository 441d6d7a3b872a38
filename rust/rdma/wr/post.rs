// SPDX-License-Identifier: GPL-2.0

//! Posting.

use super::{
    operation::Slot,
    request::Request,
    wr_buffer::{
        self,
        WrBuffer, //
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
    rdma::qp::{
        CqeNode,
        Fault,
        Init,
        QpContext,
        QueuePair,
        Rtr, //
    },
};
use core::{
    mem::MaybeUninit,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::rcu, //
};

impl<E: QpContext> QueuePair<E> {
    /// Posts the requests that `build` makes of `operation`. Any context.
    ///
    /// If only the first of them could be posted, that is no error here: the queue
    /// pair is [closed](QueuePair::close), its context hears of
    /// [`Fault::Unposted`], and the operation completes when the queue pair is
    /// drained. Likewise, with [`Fault::Stuck`], if the device took them and then could
    /// not begin with them.
    ///
    /// # Errors
    ///
    /// Gives the operation back, of which nothing was posted: `ENOTCONN` if the queue
    /// pair is closed, what the chain refused, `EINVAL` for no request at all, and
    /// what the device answers, which is `ENOMEM` if the queue is full.
    #[inline]
    pub fn post_send<T: Complete<E>>(
        &self,
        operation: Operation<T>,
        build: impl for<'a> FnOnce(&'a T, &mut Chain<'a, '_, E>) -> Result,
    ) -> Result<(), Unposted<T>> {
        self.post_send_within(&rcu::read_lock(), operation, build)
    }

    /// As [`post_send`](Self::post_send), by one who is in a read-side critical section of RCU
    /// anyway.
    ///
    /// # Errors
    ///
    /// As there.
    // A part of its caller, who mostly knows what is built.
    #[inline(always)]
    pub fn post_send_within<T: Complete<E>>(
        &self,
        grace: &rcu::Guard,
        operation: Operation<T>,
        build: impl for<'a> FnOnce(&'a T, &mut Chain<'a, '_, E>) -> Result,
    ) -> Result<(), Unposted<T>> {
        let slot = operation.into_sent::<E>();
        let mut requests = [const { MaybeUninit::uninit() }; MAX_REQUESTS];
        let mut pieces = [const { MaybeUninit::uninit() }; MAX_SGE];
        let empty = WrBuffer::empty(&mut requests, &mut pieces);
        // SAFETY: We have the slot, and nothing of it is posted.
        let (mut wr_buffer, built) = unsafe { self.build(slot, empty, build) };
        let split = |posted| (posted != 0).then_some(slot.cast());
        let result = match built {
            // SAFETY: The requests are complete. What they name is borrowed from the
            // slot, which stays until the completion takes it back; nothing of it is
            // touched below unless nothing was posted.
            Ok(()) => unsafe { self.post_requests(grace, wr_buffer.requests.from(0), split) },
            Err(error) => Err((error, 0)),
        };
        let Err((error, posted)) = result else {
            return Ok(());
        };
        if posted != 0 {
            // Stranded.
            return Ok(());
        }
        Err(Unposted {
            error,
            // SAFETY: No request of the slot was posted.
            operation: unsafe { Operation::from_posted(slot) },
        })
    }

    /// Lets `build` add the requests of the operation in `slot` to those in `wr_buffer`.
    ///
    /// # Safety
    ///
    /// `slot` must be the caller's, who must not touch it, nor move `wr_buffer`, until the
    /// requests are posted or undone.
    #[inline]
    pub(super) unsafe fn build<'q, T>(
        &'q self,
        slot: NonNull<Slot<T>>,
        wr_buffer: WrBuffer<'q>,
        build: impl for<'a> FnOnce(&'a T, &mut Chain<'a, '_, E>) -> Result,
    ) -> (WrBuffer<'q>, Result) {
        let mut chain = Chain::new(self, slot.as_ptr().cast(), wr_buffer);
        // SAFETY: By the contract. What is borrowed from the body leaves `build` in
        // the chain only, by the lifetime in its signature.
        let built = build(unsafe { &(*slot.as_ptr()).body }, &mut chain);
        chain.finish(built)
    }

    /// Posts requests; on error answers how many of them were posted, and the others
    /// are undone.
    ///
    /// `split` is asked, on error, for the operation of the request of that number if
    /// requests before it are of it, too. That one is partially posted.
    ///
    /// # Safety
    ///
    /// The requests must be complete, and what they name must stay until they
    /// complete. `split` must answer as told, and nobody else complete that operation.
    #[inline(always)]
    pub(super) unsafe fn post_requests(
        &self,
        grace: &rcu::Guard,
        requests: &mut [Request],
        split: impl FnOnce(usize) -> Option<NonNull<CqeNode>>,
    ) -> Result<(), (Error, usize)> {
        // A drain waits for the guard, and so until what it is to complete is listed as partially posted.
        self.count_sends(requests.len());
        // SAFETY: By the contract.
        let posted = unsafe { wr_buffer::post(requests, |first| self.post_raw_send(first, grace)) };
        match posted {
            Ok(()) => Ok(()),
            // SAFETY: By the contract.
            Err((error, posted)) => unsafe { self.stop_at(requests, error, posted, split) },
        }
    }

    /// Undoes what was not posted of requests, of which the first `posted` were.
    ///
    /// # Safety
    ///
    /// As [`post_requests`](Self::post_requests).
    #[cold]
    #[inline(never)]
    unsafe fn stop_at(
        &self,
        requests: &mut [Request],
        error: Error,
        posted: usize,
        split: impl FnOnce(usize) -> Option<NonNull<CqeNode>>,
    ) -> Result<(), (Error, usize)> {
        let unposted = requests.get_mut(posted..).unwrap_or_default();
        self.forget_sends(unposted.len());
        wr_buffer::undo(unposted);
        if let Some(entry) = split(posted) {
            // SAFETY: By the contract: the request that completes it was not posted.
            unsafe { self.strand(entry, error) };
        }
        Err((error, posted))
    }

    /// Keeps an operation of which only a part was posted until the queue pair is
    /// drained.
    ///
    /// # Safety
    ///
    /// `entry` must be that of the operation, which nobody else completes; the grace
    /// period in which it was posted must not have ended.
    #[cold]
    pub(super) unsafe fn strand(&self, entry: NonNull<CqeNode>, error: Error) {
        // SAFETY: By the contract.
        unsafe { self.partially_posted().add(entry) };
        self.close();
        E::faulted(self, Fault::Unposted(error));
    }

    /// Posts a receive. Any context.
    ///
    /// # Errors
    ///
    /// Gives the operation back: `ENOTCONN` if the queue pair is closed, `EINVAL` if it
    /// shares its receives, or for memory that is mapped for another device or not to be
    /// written by one, and what the device answers, which is `ENOMEM` if the queue is full.
    #[inline]
    pub fn post_receive<T: Receive<E>>(&self, operation: Operation<T>) -> Result<(), Unposted<T>> {
        let slot = operation.into_received::<E>();
        // SAFETY: The slot is a live allocation that nobody else has.
        let buffer = unsafe { (*slot.as_ptr()).body.buffer() };
        let result = buffer
            .as_sink(self.protection_domain())
            .and_then(|mut sge| {
                let mut request = bindings::ib_recv_wr {
                    sg_list: &mut sge,
                    num_sge: 1,
                    ..pin_init::zeroed()
                };
                request.__bindgen_anon_1.wr_cqe = slot.as_ptr().cast();
                // SAFETY: The request is well-formed; the memory that it names is
                // the slot's, which stays until the completion takes it back.
                unsafe { self.post_raw_receive(&request) }
            });
        result.map_err(|error| Unposted {
            error,
            // SAFETY: The request was not posted.
            operation: unsafe { Operation::from_posted(slot) },
        })
    }
}

impl<E: QpContext> Init<E> {
    /// As [`QueuePair::post_receive`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn post_receive<T: Receive<E>>(&self, operation: Operation<T>) -> Result<(), Unposted<T>> {
        self.queue.post_receive(operation)
    }
}

impl<E: QpContext> Rtr<E> {
    /// As [`QueuePair::post_receive`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn post_receive<T: Receive<E>>(&self, operation: Operation<T>) -> Result<(), Unposted<T>> {
        self.queue.post_receive(operation)
    }
}
