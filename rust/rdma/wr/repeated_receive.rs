// SPDX-License-Identifier: GPL-2.0

//! Receives that their completion handler posts again.

use super::{
    operation::Slot,
    Operation,
    ReceivePieces,
    Unposted, //
};
use crate::{
    bindings,
    rdma::{
        cq::Completion,
        qp::{
            QpContext,
            QueuePair, //
        },
    },
    sync::RcuReadLock,
};
use core::ptr::NonNull;
use kernel::prelude::*;

/// What follows the completion of a [`RepeatedReceive`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterReceive {
    /// The receive is posted again.
    Post,
    /// The receive is dropped.
    Drop,
}

/// A receive that is posted again when its completion was handled. It holds its credit of the receive queue until
/// it is dropped, so posting it again changes no counter.
pub trait RepeatedReceive<E: QpContext>: Sized + Send + 'static {
    /// Returns the pieces of the memory that the device fills.
    fn pieces(&mut self) -> ReceivePieces<'_>;

    /// Handles the completion of the receive, successful or flushed. Called once for each post, in the context of
    /// [`Complete::complete`](super::Complete::complete).
    fn received(&mut self, queue: &QueuePair<E>, completion: &Completion<'_>) -> AfterReceive;

    /// Handles a receive that could not be posted again. Same context. The errors are those of
    /// [`QueuePair::post_repeated_receive`].
    fn not_posted(queue: &QueuePair<E>, unposted: Unposted<Self>);
}

impl<E: QpContext> QueuePair<E> {
    /// Posts a receive that is posted again when it has completed (`ib_post_recv`). Any context.
    ///
    /// # Errors
    ///
    /// Returns the operation with the error:
    ///
    /// - `ENOTCONN`: the queue pair is closed.
    /// - `EINVAL`: the queue pair takes its receives from a shared queue, or the memory is for another
    ///   protection domain.
    /// - `ENOMEM`: as many receives are posted as the [`QpCap`](crate::rdma::qp::QpCap) has.
    /// - Any error of the driver.
    pub fn post_repeated_receive<T: RepeatedReceive<E>>(
        &self,
        operation: Operation<T>,
    ) -> Result<(), Unposted<T>> {
        if let Err(error) = self.take_receive_credit() {
            return Err(Unposted { error, operation });
        }
        let slot = operation.into_posted(received_repeatedly::<T, E>);
        // SAFETY: The slot is a result of `into_posted`, and nobody else has it.
        unsafe { self.post_slot(slot) }.map_err(|error| {
            self.rq_credits.put(1);
            Unposted {
                error,
                // SAFETY: The work request was not posted.
                operation: unsafe { Operation::from_posted(slot) },
            }
        })
    }

    /// Posts a receive that holds a credit. On error, both are the caller's.
    ///
    /// # Safety
    ///
    /// `slot` must be a result of `into_posted` with [`received_repeatedly`] for `T` and `E`. It must not be posted,
    /// and nobody else may use it.
    #[inline]
    unsafe fn post_slot<T: RepeatedReceive<E>>(&self, slot: NonNull<Slot<T>>) -> Result {
        // SAFETY: By the safety requirements.
        let body = unsafe { &mut (*slot.as_ptr()).body };
        let request = body
            .pieces()
            .work_request(self.local_memory(), slot.as_ptr().cast())?;
        // SAFETY: The work request is well-formed. The memory that it names belongs to the slot,
        // which is valid until its completion.
        unsafe { self.post_raw_receive(&request, &RcuReadLock::new()) }
    }
}

/// Completes a `Slot<T>` on a queue pair with context `E`, and posts it again.
///
/// # Safety
///
/// Called by the core with the completion of a `Slot<T>` that [`QueuePair::post_slot`] has posted on a
/// `QueuePair<E>`, which is alive.
unsafe extern "C" fn received_repeatedly<T: RepeatedReceive<E>, E: QpContext>(
    cq: *mut bindings::ib_cq,
    wc: *mut bindings::ib_wc,
) {
    // SAFETY: By the safety requirements. The completion entry is the first member of the slot.
    let (queue, slot, completion) = unsafe {
        let queue = QueuePair::<E>::of_completion(wc);
        (
            queue,
            NonNull::new_unchecked((*wc).__bindgen_anon_1.wr_cqe.cast::<Slot<T>>()),
            Completion::from_raw(cq, wc, &queue.registrations),
        )
    };
    // SAFETY: A posted slot belongs to its completion.
    let body = unsafe { &mut (*slot.as_ptr()).body };
    let posted = match body.received(queue, &completion) {
        // SAFETY: The slot was posted before, and `body` is not used any more.
        AfterReceive::Post => unsafe { queue.post_slot(slot) },
        AfterReceive::Drop => {
            queue.rq_credits.put(1);
            // SAFETY: The slot has completed.
            return drop(unsafe { Operation::from_posted(slot) });
        }
    };
    if let Err(error) = posted {
        queue.rq_credits.put(1);
        // SAFETY: The work request was not posted.
        let operation = unsafe { Operation::from_posted(slot) };
        T::not_posted(queue, Unposted { error, operation });
    }
}
