// SPDX-License-Identifier: GPL-2.0

//! What a target tells in its own time, while it is connected.

use super::{
    Controller, //
};
use crate::{ctrl_error::CtrlError, disk::Queue, uapi::ErrorStage};
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
use rrdma::{
    rdma::qp::QueuePair,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// How the target is listened to.
pub(super) struct AenHandler {
    pace: AenRateLimit,
    /// When it was asked for its next event; `None` if it is not.
    asked: Option<Instant<Monotonic>>,
    /// What it tells is heard no sooner.
    next: Deadline,
}

impl AenHandler {
    /// Nothing is known of the target yet.
    pub(super) fn new() -> Self {
        Self {
            pace: AenRateLimit::default(),
            asked: None,
            next: Deadline::NEVER,
        }
    }

    /// Begins with a connection on which the target was asked, if it tells of events; at the pace
    /// of the one before.
    pub(super) fn begin(&mut self, tells: bool) {
        self.asked = tells.then(Instant::now);
        self.next = Deadline::after(Msecs::new(self.pace.pause_ms()));
    }

    /// Whether more can be told.
    pub(super) fn is_open(&self) -> bool {
        self.asked.is_some()
    }

    /// Gives what was told to `act`, and asks again. Answers when it wants to be called at the
    /// latest. Sleeps, but not for the target.
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

/// Submits the next AER; whether that worked.
fn submit(controller: &Controller, queue: &QueuePair<Queue>) -> bool {
    let submitted = Queue::submit_aer(queue);
    if let Err(error) = submitted {
        let what = "asking for the next event";
        let error = CtrlError::from_command(ErrorStage::Io, error, what);
        controller.warn(format_args!("{}", error.message()));
    }
    submitted.is_ok()
}

/// The event of a completed AER; `None` if the target reports no more events.
fn parse(controller: &Controller, completion: cqe::Completion) -> Option<AsyncEvent> {
    let status = completion.status();
    if !status.is_success() {
        controller.log(format_args!("the target tells no events: {status}"));
        return None;
    }
    let event = AsyncEvent::from_result(completion.result32());
    match event {
        AsyncEvent::NamespacesChanged | AsyncEvent::DiscoveryChanged => {}
        event => controller.log(format_args!("the target tells: {event}")),
    }
    Some(event)
}
