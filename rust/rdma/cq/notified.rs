// SPDX-License-Identifier: GPL-2.0

//! Queues that wake their owner.

use super::{
    CompletionQueue,
    CqEvents, //
};
use crate::{
    bindings,
    rdma::device::DeviceRef,
    sync::TimedCompletion, //
};
use kernel::{
    error::to_result,
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// What a queue is to wake its owner for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotifyMode {
    /// The next completion, whatever it is.
    Next,
    /// The next one that failed, or that the peer has asked to wake for.
    Solicited,
}

/// A completion queue that its owner polls, and that wakes it when there is something
/// (`ib_create_cq`): what user space does with completion channels.
///
/// The owner gives a completion to be woken by, which may be that of other things
/// too. Devices tell of a completion with locks held under which the queue can be
/// neither polled nor armed, so nothing of the owner runs then; it waits in a thread
/// or a work item of its own:
///
/// ```ignore
/// loop {
///     while queue.poll(BUDGET) == BUDGET {}
///     if !queue.arm(NotifyMode::Next)? {
///         wake.wait();
///     }
/// }
/// ```
///
/// An armed queue wakes once and is to be armed again. It has one poller, which
/// `&mut` says. The drain of a queue pair polls in the owner's place, who gets nothing
/// meanwhile.
pub struct NotifiedQueue(Arc<CompletionQueue>);

impl NotifiedQueue {
    /// A queue of so many entries (`ib_create_cq`) on completion vector `vector`, which
    /// is taken modulo the number of vectors. It is not armed. `wake` is completed
    /// once for each time that it was, and if the queue
    /// [breaks](CompletionQueue::is_broken). `owner` is what `rdma res show cq` names.
    /// May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for no entries or more than a queue of the device can have, `ENOMEM`.
    pub fn new(
        device: DeviceRef,
        entries: u32,
        vector: u32,
        wake: Arc<TimedCompletion>,
        owner: &'static CStr,
    ) -> Result<Self> {
        let events = CqEvents::new(Some(wake))?;
        let queue = CompletionQueue::create(device, entries, vector, events, owner)?;
        Ok(Self(queue))
    }

    /// Handles at most `budget` of the completions that are there, and says how many
    /// they were; 0 while a queue pair of the queue is drained. Any context, which is
    /// then that of the handlers.
    #[inline]
    pub fn poll(&mut self, budget: u32) -> u32 {
        self.0.poll_as_owner(budget)
    }

    /// Asks to be woken (`ib_req_notify_cq`). Any context.
    ///
    /// Returns whether there may be completions already, which came between the last
    /// [`poll`](Self::poll) and this: then the owner must poll again, as it may not be
    /// woken for them.
    ///
    /// # Errors
    ///
    /// What the device answers.
    #[inline]
    #[must_use = "whoever waits although something is there may wait for ever"]
    pub fn arm(&mut self, what: NotifyMode) -> Result<bool> {
        let flags = bindings::ib_cq_notify_flags_IB_CQ_REPORT_MISSED_EVENTS
            | match what {
                NotifyMode::Next => bindings::ib_cq_notify_flags_IB_CQ_NEXT_COMP,
                NotifyMode::Solicited => bindings::ib_cq_notify_flags_IB_CQ_SOLICITED,
            };
        // SAFETY: By the invariant of the queue.
        let missed = unsafe { bindings::ib_req_notify_cq(self.0.as_raw(), flags) };
        to_result(missed)?;
        Ok(missed > 0)
    }

    /// The queue, for queue pairs.
    #[inline]
    pub fn completion_queue(&self) -> &Arc<CompletionQueue> {
        &self.0
    }
}
