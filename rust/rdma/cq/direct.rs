// SPDX-License-Identifier: GPL-2.0

//! Completion queues that the owner polls at any time.

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

/// A completion queue that its owner polls, without interrupts (`IB_POLL_DIRECT`). For threads that
/// only wait for completions.
///
/// Several threads may poll, but one at a time: the others get 0, and so does a completion handler
/// that polls. So completions are handled one after the other. While a queue pair of this queue is
/// drained, the drain polls, and the owner gets 0.
///
/// Queue pairs are created with [`completion_queue`](Self::completion_queue).
pub struct DirectQueue(Arc<CompletionQueue>);

impl DirectQueue {
    /// Creates a queue (`ib_alloc_cq`) on completion vector `vector`, which is taken modulo the
    /// number of vectors. `owner` is the name that `rdma res show cq` prints. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `entries` is 0, or exceeds the device's limit.
    /// - `ENOMEM`.
    pub fn new(device: DeviceRef, entries: u32, vector: u32, owner: &'static CStr) -> Result<Self> {
        let poll = bindings::ib_poll_context_IB_POLL_DIRECT;
        let queue = CompletionQueue::alloc_with(device, entries, vector, poll, owner)?;
        Ok(Self(queue))
    }

    /// Handles at most `budget` completions and returns their number (`ib_process_cq_direct`). Also
    /// returns 0 while another thread polls, or while a queue pair of this queue is drained.
    ///
    /// Does not wait. Any context; the handlers run in it.
    #[inline]
    pub fn poll(&self, budget: u32) -> u32 {
        self.0.poll_as_owner(budget)
    }

    /// Returns the completion queue, to create queue pairs with.
    #[inline]
    pub fn completion_queue(&self) -> &Arc<CompletionQueue> {
        &self.0
    }
}

/// Handles at most `budget` completions of a queue that the core does not poll. Returns their
/// number.
#[inline]
pub(super) fn process(queue: &CompletionQueue, budget: u32) -> u32 {
    // A negative budget means no limit.
    let budget = budget.try_into().unwrap_or(i32::MAX);
    // SAFETY: The queue is alive by its type invariant.
    let handled = unsafe { bindings::ib_process_cq_direct(queue.as_raw(), budget) };
    handled.try_into().unwrap_or(0)
}
