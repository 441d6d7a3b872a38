// SPDX-License-Identifier: GPL-2.0

//! Context of a queue pair that stores its events for the task.

use crate::common::{
    step_error::StepError,
    task::SampleTask, //
};
use kernel::{
    fmt,
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    new_irq_lock,
    rdma::{
        cq::WcError,
        qp::{
            Fault,
            QpContext,
            QpType,
            QueuePair, //
        },
    },
    sync::{
        IrqLock,
        Msecs,
        TimedCompletion, //
    },
    text::Message,
};

/// Data that the callbacks of a queue pair store: completed operations.
pub(crate) trait EventData: Default + Send + Unpin + 'static {
    /// Transport service of the queue pair.
    type QpType: QpType;
}

/// The context of a queue pair. Completion handlers and callbacks, in any context, store their
/// results in it and wake the task.
#[pin_data]
pub(crate) struct EventSink<G> {
    #[pin]
    events: IrqLock<Events<G>>,
    wake: Arc<TimedCompletion>,
}

struct Events<G> {
    data: G,
    /// The first error that was not a flush.
    error: Option<Message<96>>,
    /// The peer has disconnected.
    disconnected: bool,
}

impl<G: EventData> EventSink<G> {
    /// Creates a sink that wakes `task`.
    pub(crate) fn new(task: &SampleTask) -> impl PinInit<Self, Error> {
        let events = Events {
            data: G::default(),
            error: None,
            disconnected: false,
        };
        let wake = task.wake().clone();
        try_pin_init!(Self {
            events <- new_irq_lock!(events, "samples::EventSink"),
            wake,
        })
    }

    /// Updates the data and wakes the task. Any context.
    pub(crate) fn update(&self, take: impl FnOnce(&mut G)) {
        take(&mut self.events.lock().data);
        self.wake.complete();
    }

    /// Records an error and wakes the task. Only the first error is kept. Any context.
    pub(crate) fn fail(&self, cause: fmt::Arguments<'_>) {
        let message = Message::new(cause);
        self.events.lock().error.get_or_insert(message);
        self.wake.complete();
    }

    /// Records the failure of a work request. A flush is ignored: it is the effect of another
    /// error.
    pub(crate) fn failed(&self, request: &str, failure: WcError) {
        if !failure.is_flush() {
            self.fail(fmt!("{request}: {failure}"));
        }
    }

    /// Records that the peer has disconnected. Any context.
    pub(crate) fn set_disconnected(&self) {
        self.events.lock().disconnected = true;
        self.wake.complete();
    }

    /// Returns whether the peer has disconnected and no error was recorded.
    pub(crate) fn is_disconnected(&self) -> bool {
        let events = self.events.lock();
        events.disconnected && events.error.is_none()
    }

    /// Waits until `take` returns a value. Sleeps.
    ///
    /// # Errors
    ///
    /// A failure of `step` if an error was recorded, the peer has disconnected, `limit` has passed,
    /// or the task is stopped.
    pub(crate) fn wait<R>(
        &self,
        task: &SampleTask,
        step: &'static str,
        limit: Msecs,
        mut take: impl FnMut(&mut G) -> Option<R>,
    ) -> Result<R, StepError> {
        task.wait_for(step, limit, || self.poll(step, &mut take))?
    }

    /// Returns the value of `take`, or why it will not come. Any context.
    pub(crate) fn poll<R>(
        &self,
        step: &'static str,
        take: impl FnOnce(&mut G) -> Option<R>,
    ) -> Option<Result<R, StepError>> {
        let mut events = self.events.lock();
        // Data that arrived before the peer disconnected is still taken.
        match (take(&mut events.data), &events.error, events.disconnected) {
            (Some(answer), _, _) => Some(Ok(answer)),
            (None, Some(error), _) => Some(Err(StepError::new(step, fmt!("{error}")))),
            (None, None, true) => Some(Err(StepError::new(step, fmt!("the peer disconnected")))),
            (None, None, false) => None,
        }
    }

    /// Drops the stored operations. They may hold references to the queue pair, which owns this
    /// sink.
    pub(crate) fn clear(&self) {
        let data = core::mem::take(&mut self.events.lock().data);
        drop(data);
    }
}

impl<G: EventData> QpContext for EventSink<G> {
    type QpType = G::QpType;

    fn failed(queue: &QueuePair<Self>, failure: WcError) {
        queue.context().failed("unsignalled request", failure);
    }

    fn faulted(queue: &QueuePair<Self>, fault: Fault) {
        queue.context().fail(format_args!("{fault}"));
    }
}
