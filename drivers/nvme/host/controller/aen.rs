// SPDX-License-Identifier: GPL-2.0

//! Asynchronous events of the target.

use super::{ctrl_device::Uevent, Controller};
use crate::{ctrl_error::CtrlError, uapi::ErrorStage};
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
    pace: AenRateLimit,
    /// When the outstanding AER was submitted; `None` if there is none.
    asked: Option<Instant<Monotonic>>,
    /// Earliest time to handle the next AEN.
    next: Deadline,
}

impl AenHandler {
    /// Returns a handler without an outstanding AER.
    pub(super) fn new() -> Self {
        Self {
            pace: AenRateLimit::default(),
            asked: None,
            next: Deadline::NEVER,
        }
    }

    /// Begins with a new connection; `tells` if an AER was submitted on it. The rate limit carries
    /// over from the last connection.
    pub(super) fn begin(&mut self, tells: bool) {
        self.asked = tells.then(Instant::now);
        self.next = Deadline::after(Msecs::new(self.pace.pause_ms()));
    }

    /// Whether more events can arrive.
    pub(super) fn is_open(&self) -> bool {
        self.asked.is_some()
    }

    /// Passes an event that arrived to `act`, and submits the next AER. Returns the latest time for
    /// the next call. Sleeps, but does not wait for the target.
    pub(super) fn poll(
        &mut self,
        controller: &Controller,
        queue: &QueuePair<Queue>,
        act: impl FnOnce(AsyncEvent),
    ) -> Deadline {
        let Some(asked) = self.asked else {
            return Deadline::NEVER;
        };
        if self.next.left() > Msecs::new(0) {
            return self.next;
        }
        let Some(event) = queue.context().take_event() else {
            return Deadline::NEVER;
        };
        self.pace = self.pace.after(Msecs::from(event.arrived - asked).get());
        self.next = Deadline::after(Msecs::new(self.pace.pause_ms()));
        let tells = match parse(controller, event.completion) {
            Some(event) => {
                act(event);
                submit(controller, queue)
            }
            None => false,
        };
        self.asked = tells.then(Instant::now);
        self.next
    }
}

/// Submits the next AER, and returns whether that succeeded.
fn submit(controller: &Controller, queue: &QueuePair<Queue>) -> bool {
    let submitted = Queue::submit_aer(queue);
    if let Err(error) = submitted {
        let what = "submitting the next AER";
        let error = CtrlError::from_command(ErrorStage::Io, error, what);
        controller.warn(format_args!("{}", error.message()));
    }
    submitted.is_ok()
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
