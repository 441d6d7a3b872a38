// SPDX-License-Identifier: GPL-2.0

//! Completion queues that wake their owner.

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

/// Which completions wake the owner (`enum ib_cq_notify_flags`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotifyMode {
    /// The next completion.
    Next,
    /// The next completion that failed, or whose message is
    /// [solicited](crate::rdma::wr::Chain::solicited).
    Solicited,
}

/// A completion queue that its owner polls when it is woken (`ib_create_cq`). The counterpart of
/// user space's completion channels.
///
/// The owner passes a completion to be woken by, which may have other uses, too. Devices notify
/// while they hold locks under which the queue can be neither polled nor armed. So no code of the
/// owner runs in the notification. The owner waits in a thread or work item:
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
/// An armed queue wakes its owner once, and must then be armed again. `&mut` ensures that there is
/// one poller. While a queue pair of this queue is drained, the drain polls, and the owner gets 0.
pub struct NotifiedQueue(Arc<CompletionQueue>);

impl NotifiedQueue {
    /// Creates a queue (`ib_create_cq`) on completion vector `vector`, which is taken modulo the
    /// number of vectors. It is not armed. `owner` is the name that `rdma res show cq` prints. May
    /// sleep.
    ///
    /// `wake` is completed once each time that the queue was armed, and when the queue
    /// [fails](CompletionQueue::is_broken).
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `entries` is 0, or exceeds the device's limit.
    /// - `ENOMEM`.
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

    /// Handles at most `budget` completions and returns their number. Also returns 0 while a queue
    /// pair of this queue is drained. Any context; the handlers run in it.
    #[inline]
    pub fn poll(&mut self, budget: u32) -> u32 {
        self.0.poll_as_owner(budget)
    }

    /// Arms the queue to wake its owner (`ib_req_notify_cq`). Any context.
    ///
    /// Returns whether completions may have arrived since the last [`poll`](Self::poll). If so, the
    /// owner must poll again, because they may not wake it.
    ///
    /// # Errors
    ///
    /// Any error of the driver.
    #[inline]
    #[must_use = "if true, completions may be waiting: poll again instead of sleeping"]
    pub fn arm(&mut self, what: NotifyMode) -> Result<bool> {
        let flags = bindings::ib_cq_notify_flags_IB_CQ_REPORT_MISSED_EVENTS
            | match what {
                NotifyMode::Next => bindings::ib_cq_notify_flags_IB_CQ_NEXT_COMP,
                NotifyMode::Solicited => bindings::ib_cq_notify_flags_IB_CQ_SOLICITED,
            };
        // SAFETY: The queue is alive by its type invariant.
        let missed = unsafe { bindings::ib_req_notify_cq(self.0.as_raw(), flags) };
        to_result(missed)?;
        Ok(missed > 0)
    }

    /// Returns the completion queue, to create queue pairs with.
    #[inline]
    pub fn completion_queue(&self) -> &Arc<CompletionQueue> {
        &self.0
    }
}
