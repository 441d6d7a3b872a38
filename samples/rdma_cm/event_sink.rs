// SPDX-License-Identifier: GPL-2.0

//! Events of a queue pair, kept for the task.

use crate::common::{
    failure::Failure,
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
        cq::Failure as Failed,
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

/// What the callbacks of a queue pair leave for the task: operations that are back.
pub(crate) trait EventData: Default + Send + Unpin + 'static {
    /// The service of the queue pair.
    type QpType: QpType;
}

/// The context of a queue pair: its callbacks, in any context, leave their results here.
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
    /// A sink that wakes the task.
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

    /// Updates the data, and wakes the task. Any context.
    pub(crate) fn update(&self, take: impl FnOnce(&mut G)) {
        take(&mut self.events.lock().data);
        self.wake.complete();
    }

    /// Records an error, and wakes the task. Any context.
    pub(crate) fn fail(&self, cause: fmt::Arguments<'_>) {
        let message = Message::new(cause);
        self.events.lock().error.get_or_insert(message);
        self.wake.complete();
    }

    /// A request failed. What was flushed only tells that something else has.
    pub(crate) fn failed(&self, request: &str, failure: Failed) {
        if !failure.is_flush() {
            self.fail(fmt!("{request}: {failure}"));
        }
    }

    /// Records that the peer has disconnected.
    pub(crate) fn set_disconnected(&self) {
        self.events.lock().disconnected = true;
        self.wake.complete();
    }

    /// Whether the peer has disconnected, and there was no error.
    pub(crate) fn is_disconnected(&self) -> bool {
        let events = self.events.lock();
        events.disconnected && events.error.is_none()
    }

    /// Waits until `take` finds what it wants.
    ///
    /// # Errors
    ///
    /// A failure of `step`, if it is not to be expected any more.
    pub(crate) fn wait<R>(
        &self,
        task: &SampleTask,
        step: &'static str,
        limit: Msecs,
        mut take: impl FnMut(&mut G) -> Option<R>,
    ) -> Result<R, Failure> {
        task.wait_for(step, limit, || self.poll(step, &mut take))?
    }

    /// What `take` finds, or why it is not to be expected any more.
    pub(crate) fn poll<R>(
        &self,
        step: &'static str,
        take: impl FnOnce(&mut G) -> Option<R>,
    ) -> Option<Result<R, Failure>> {
        let mut events = self.events.lock();
        // What has come is taken even if the peer has disconnected since.
        match (take(&mut events.data), &events.error, events.disconnected) {
            (Some(answer), _, _) => Some(Ok(answer)),
            (None, Some(error), _) => Some(Err(Failure::new(step, fmt!("{error}")))),
            (None, None, true) => Some(Err(Failure::new(step, fmt!("the peer disconnected")))),
            (None, None, false) => None,
        }
    }

    /// Drops the operations that are back. They may hold the queue pair, which holds
    /// this.
    pub(crate) fn clear(&self) {
        let data = core::mem::take(&mut self.events.lock().data);
        drop(data);
    }
}

impl<G: EventData> QpContext for EventSink<G> {
    type QpType = G::QpType;

    fn failed(queue: &QueuePair<Self>, failure: Failed) {
        queue.context().failed("request ahead of another", failure);
    }

    fn faulted(queue: &QueuePair<Self>, fault: Fault) {
        queue.context().fail(format_args!("{fault}"));
    }
}
