// SPDX-License-Identifier: GPL-2.0

//! Asynchronous events of the target.

use super::{ctrl_device::Uevent, Controller};
use kernel::time::{
    Instant,
    Monotonic, //
};
use nvme_proto::{
    format::{
        async_event::AsyncEvent,
        cqe, //
    },
    policy::aen_rate_limit::AenRateLimit,
};
use rnvmf_disk::Queue;
use rrdma::{
    rdma::qp::QueuePair,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// Handles asynchronous events: one AER is outstanding, and the rate of events is limited.
pub(super) struct AenHandler {
    rate_limit: AenRateLimit,
    /// When the outstanding AER was submitted; `None` if there is none.
    submitted_at: Option<Instant<Monotonic>>,
    /// Earliest time to handle the next AEN.
    next: Deadline,
}

impl AenHandler {
    /// Returns a handler without an outstanding AER.
    pub(super) fn new() -> Self {
        Self {
            rate_limit: AenRateLimit::default(),
            submitted_at: None,
            next: Deadline::NEVER,
        }
    }

    /// Begins with a new connection; `submitted` if an AER was submitted on it. The rate limit carries
    /// over from the last connection.
    pub(super) fn begin(&mut self, submitted: bool) {
        self.submitted_at = submitted.then(Instant::now);
        self.next = Deadline::after(Msecs::new(self.rate_limit.pause_ms()));
    }

    /// Whether more events can arrive.
    pub(super) fn is_open(&self) -> bool {
        self.submitted_at.is_some()
    }

    /// Passes an event that arrived to `act`, and submits the next AER. Returns the latest time for
    /// the next call. Sleeps, but does not wait for the target.
    pub(super) fn poll(
        &mut self,
        controller: &Controller,
        queue: &QueuePair<Queue>,
        act: impl FnOnce(AsyncEvent),
    ) -> Deadline {
        let Some(submitted_at) = self.submitted_at else {
            return Deadline::NEVER;
        };
        if self.next.left() > Msecs::new(0) {
            return self.next;
        }
        let Some(event) = queue.context().take_event() else {
            return Deadline::NEVER;
        };
        self.rate_limit = self
            .rate_limit
            .after(Msecs::from(event.arrived - submitted_at).get());
        self.next = Deadline::after(Msecs::new(self.rate_limit.pause_ms()));
        let submitted = match parse(controller, event.completion) {
            Some(event) => {
                act(event);
                // A failure is reported as a loss of the connection.
                Queue::submit_aer(queue).is_ok()
            }
            None => false,
        };
        self.submitted_at = submitted.then(Instant::now);
        self.next
    }
}

/// Returns the event of a completed AER; `None` if the AER failed, so no more events follow.
fn parse(controller: &Controller, completion: cqe::Completion) -> Option<AsyncEvent> {
    let status = completion.status();
    if !status.is_success() {
        controller.log(format_args!(
            "no more asynchronous events: AER failed: {status}"
        ));
        return None;
    }
    let result = completion.result32();
    let event = AsyncEvent::from_result(result);
    match event {
        AsyncEvent::NamespacesChanged | AsyncEvent::AnaChanged | AsyncEvent::DiscoveryChanged => {}
        event => {
            controller.log(format_args!("asynchronous event: {event}"));
            controller.queue_uevent(Uevent::Aen(result));
        }
    }
    Some(event)
}
