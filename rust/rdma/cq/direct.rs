// SPDX-License-Identifier: GPL-2.0

//! Queues that the consumer polls whenever it likes.

use super::CompletionQueue;
use crate::{
    bindings,
    rdma::device::DeviceRef, //
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// A completion queue that its owner polls, and that raises no interrupts
/// (`IB_POLL_DIRECT`): for who has nothing better to do than to wait.
///
/// Whoever has it may poll, from several processors too: one is at it at a time, and the
/// others get nothing, as do those who poll from a completion that it handles. So
/// completions are handled one after the other. Queue pairs are made on
/// [`completion_queue`](Self::completion_queue). The drain of one of them polls in the
/// owner's place, who gets nothing meanwhile.
pub struct DirectQueue(Arc<CompletionQueue>);

impl DirectQueue {
    /// A queue of so many entries (`ib_alloc_cq`) on completion vector `vector`, which
    /// is taken modulo the number of vectors. `owner` is what `rdma res show cq`
    /// names. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for no entries or more than a queue of the device can have, `ENOMEM`.
    pub fn new(device: DeviceRef, entries: u32, vector: u32, owner: &'static CStr) -> Result<Self> {
        let poll = bindings::ib_poll_context_IB_POLL_DIRECT;
        let queue = CompletionQueue::alloc_with(device, entries, vector, poll, owner)?;
        Ok(Self(queue))
    }

    /// Handles at most `budget` of the completions that are there, and says how many
    /// they were (`ib_process_cq_direct`); 0 also while somebody else polls, or a queue pair
    /// of the queue is drained. Never waits. Any context, which is then that of the handlers.
    #[inline]
    pub fn poll(&self, budget: u32) -> u32 {
        self.0.poll_as_owner(budget)
    }

    /// The queue, for queue pairs.
    #[inline]
    pub fn completion_queue(&self) -> &Arc<CompletionQueue> {
        &self.0
    }
}

/// Handles at most `budget` completions of a queue that the core does not poll.
#[inline]
pub(super) fn process(queue: &CompletionQueue, budget: u32) -> u32 {
    // A negative one has another meaning.
    let budget = budget.try_into().unwrap_or(i32::MAX);
    // SAFETY: By the invariant of the queue.
    let handled = unsafe { bindings::ib_process_cq_direct(queue.as_raw(), budget) };
    handled.try_into().unwrap_or(0)
}
