// SPDX-License-Identifier: GPL-2.0

//! What completions and events have to say to the job.

use crate::common::{
    failure::Failure,
    job::Job, //
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
            Context,
            Fault,
            QueuePair,
            Service, //
        },
    },
    sync::{
        IrqLock,
        Msecs,
        TimedCompletion, //
    },
    text::Message,
};

/// What is heard of a queue pair while all is well: operations that are back, for the
/// job to take.
pub(crate) trait Good: Default + Send + Unpin + 'static {
    /// The service of the queue pair.
    type Service: Service;
}

/// The context of a queue pair: callbacks, in any context, leave here what they bring.
#[pin_data]
pub(crate) struct Ear<G> {
    #[pin]
    heard: IrqLock<Heard<G>>,
    wake: Arc<TimedCompletion>,
}

struct Heard<G> {
    good: G,
    /// The first reason counts, unless it is only that all was flushed.
    trouble: Option<Message<96>>,
    /// The peer has taken its leave.
    gone: bool,
}

impl<G: Good> Ear<G> {
    /// An ear that wakes the job.
    pub(crate) fn new(job: &Job) -> impl PinInit<Self, Error> {
        let heard = Heard {
            good: G::default(),
            trouble: None,
            gone: false,
        };
        let wake = job.wake().clone();
        try_pin_init!(Self {
            heard <- new_irq_lock!(heard, "samples::Ear"),
            wake,
        })
    }

    /// Something good has come.
    pub(crate) fn hear(&self, take: impl FnOnce(&mut G)) {
        take(&mut self.heard.lock().good);
        self.wake.complete();
    }

    /// Something is wrong.
    pub(crate) fn trouble(&self, cause: fmt::Arguments<'_>) {
        let message = Message::new(cause);
        self.heard.lock().trouble.get_or_insert(message);
        self.wake.complete();
    }

    /// A request failed. What was flushed only tells that something else has.
    pub(crate) fn failed(&self, request: &str, failure: Failed) {
        if !failure.is_flush() {
            self.trouble(fmt!("{request}: {failure}"));
        }
    }

    /// The peer takes its leave.
    pub(crate) fn leave(&self) {
        self.heard.lock().gone = true;
        self.wake.complete();
    }

    /// Whether the peer has taken its leave, and nothing else is wrong.
    pub(crate) fn is_gone(&self) -> bool {
        let heard = self.heard.lock();
        heard.gone && heard.trouble.is_none()
    }

    /// Waits until `take` finds what it wants.
    ///
    /// # Errors
    ///
    /// A failure of `step`, if it is not to be expected any more.
    pub(crate) fn wait<R>(
        &self,
        job: &Job,
        step: &'static str,
        limit: Msecs,
        mut take: impl FnMut(&mut G) -> Option<R>,
    ) -> Result<R, Failure> {
        job.wait_for(step, limit, || self.look(step, &mut take))?
    }

    /// What `take` finds, or why it is not to be expected any more.
    pub(crate) fn look<R>(
        &self,
        step: &'static str,
        take: impl FnOnce(&mut G) -> Option<R>,
    ) -> Option<Result<R, Failure>> {
        let mut heard = self.heard.lock();
        // What has come is taken even if the peer has gone since.
        match (take(&mut heard.good), &heard.trouble, heard.gone) {
            (Some(answer), _, _) => Some(Ok(answer)),
            (None, Some(trouble), _) => Some(Err(Failure::new(step, fmt!("{trouble}")))),
            (None, None, true) => Some(Err(Failure::new(step, fmt!("the peer disconnected")))),
            (None, None, false) => None,
        }
    }

    /// Drops the operations that are back. They may hold the queue pair, which holds
    /// this.
    pub(crate) fn forget(&self) {
        let good = core::mem::take(&mut self.heard.lock().good);
        drop(good);
    }
}

impl<G: Good> Context for Ear<G> {
    type Service = G::Service;

    fn failed(queue: &QueuePair<Self>, failure: Failed) {
        queue.context().failed("request ahead of another", failure);
    }

    fn faulted(queue: &QueuePair<Self>, fault: Fault) {
        queue.context().trouble(format_args!("{fault}"));
    }
}
