// SPDX-License-Identifier: GPL-2.0

//! Exchanges the messages of a ping-pong, on one or more queue pairs. An end sends its next message
//! when it has received one and its own last one has completed.
//!
//! - [`qp_ctx`]: the part of a queue pair, in its completion handlers.
//! - [`polled_queue`]: the completion queue, which the task polls.
//! - [`run`]: the part of the task.

// Only one sample shares receives.
#![allow(dead_code)]

pub(crate) mod polled_queue;
pub(crate) mod qp_ctx;
pub(crate) mod run;

use crate::common::{
    peer::Peer,
    step_error::{
        Step,
        StepError, //
    },
    task::SampleTask, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use qp_ctx::{
    QpCtx,
    RecvBuf, //
};
use rrdma::{
    new_irq_lock,
    rdma::{
        cq,
        pd::ProtectionDomain,
        qp::{
            Connected,
            QpType, //
        },
        wr::{
            Chain,
            Operation,
            Sge, //
        },
    },
    sync::{
        IrqLock,
        TimedCompletion, //
    },
};
use run::Outcome;

/// Names of the steps in a [`StepError`]: exchange of messages, posting a send.
const STEP: &str = "messages";
const SEND: &str = "send";

/// How a transport service carries messages, and their content in the program.
pub(crate) trait MessageProtocol: Send + Sync + Sized + 'static {
    /// Type of the queue pairs.
    type QpType: QpType;

    /// Destination of a message, if the queue pair is not connected.
    type Route: Route<Self>;

    /// Length in bytes of the header that precedes each received message.
    const HEADER: usize = 0;

    /// The byte that the program fills a message with.
    const FILL: u8 = 0x7b;

    /// The program marks each page of a message; otherwise all bytes are `FILL`.
    const MARKS_PAGES: bool;

    /// The service does not retransmit, so this end sends another message when one is lost.
    const RESENDS: bool;
}

/// Destination of messages to the peer.
pub(crate) trait Route<P: MessageProtocol>: Sized + Send {
    /// Resolves the destination.
    fn find(pd: &Arc<ProtectionDomain>, peer: &Peer<'_>) -> Result<Self>;

    /// Adds the send of a message to `chain`.
    fn send<'a>(&'a self, message: Sge<'a>, chain: &mut Chain<'a, '_, QpCtx<P>>) -> Result;
}

/// A connected queue pair has its destination.
impl<P: MessageProtocol<QpType: Connected>> Route<P> for () {
    fn find(_: &Arc<ProtectionDomain>, _: &Peer<'_>) -> Result {
        Ok(())
    }

    fn send<'a>(&'a self, message: Sge<'a>, chain: &mut Chain<'a, '_, QpCtx<P>>) -> Result {
        chain.send([message])
    }
}

/// Parameters of a ping-pong.
pub(crate) struct PingPongConfig {
    /// Number of messages in each direction, on all queue pairs together.
    pub(crate) iters: u32,
    /// This end sends the first message of each queue pair.
    pub(crate) begins: bool,
    /// Received data is compared byte by byte.
    pub(crate) check: bool,
    pub(crate) queue_pairs: u32,
    /// Number of receives in the shared receive queue.
    pub(crate) shared_receives: u32,
}

/// State of a ping-pong, shared by its queue pairs.
#[pin_data]
pub(crate) struct PingPong {
    wake: Arc<TimedCompletion>,
    config: PingPongConfig,
    #[pin]
    counters: IrqLock<Counters>,
}

struct Counters {
    sent: u32,
    received: u32,
    /// Messages that were sent in place of lost ones.
    resent: u32,
    /// The shared receive queue has reached its limit.
    short: bool,
    /// Used receives of the shared receive queue; has capacity for all of them.
    used: KVec<Operation<RecvBuf>>,
    /// The first failure.
    failure: Option<StepError>,
}

/// Changes since the task's last check.
pub(crate) enum Progress {
    /// The number of messages received so far has grown to this; at most `iters`.
    Received(u32),
    /// The shared receive queue runs short of receives.
    Short,
    /// All messages were sent and received. If the peer ended before it acknowledged the last ones,
    /// the outcome is [`Outcome::Unacknowledged`].
    End(Outcome),
}

impl PingPong {
    pub(crate) fn new(task: &SampleTask, config: PingPongConfig) -> Result<Arc<Self>, StepError> {
        let receives = config.shared_receives as usize;
        let counters = Counters {
            sent: 0,
            received: 0,
            resent: 0,
            short: false,
            used: KVec::with_capacity(receives, GFP_KERNEL).step("receives")?,
            failure: None,
        };
        let init = pin_init!(Self {
            wake: task.wake().clone(),
            config,
            counters <- new_irq_lock!(counters, "pingpong::Counters"),
        });
        Arc::pin_init(init, GFP_KERNEL).step(STEP)
    }

    /// Records that the shared receive queue has reached its limit. Any context.
    pub(crate) fn set_short(&self) {
        self.counters.lock().short = true;
        self.wake.complete();
    }

    /// Takes a used receive of the shared receive queue. Any context.
    pub(crate) fn take_used(&self) -> Option<Operation<RecvBuf>> {
        self.counters.lock().used.pop()
    }

    /// Ends the ping-pong with a failure; only the first one is kept. Any context.
    pub(crate) fn end(&self, failure: StepError) {
        self.counters.lock().failure.get_or_insert(failure);
        self.wake.complete();
    }

    /// Ends the ping-pong if a work request has failed, unless it was only flushed.
    fn failed(&self, step: &'static str, failure: cq::WcError) {
        if !failure.is_flush() {
            self.end(StepError::new(step, fmt!("{failure}")));
        }
    }

    /// Increments a counter.
    fn count(&self, which: impl FnOnce(&mut Counters) -> &mut u32) {
        let mut counters = self.counters.lock();
        let counter = which(&mut counters);
        *counter = counter.saturating_add(1);
    }

    /// Returns whether more messages must be sent.
    fn has_more(&self) -> bool {
        let counters = self.counters.lock();
        counters.sent < self.config.iters.saturating_add(counters.resent)
    }

    /// Returns whether only completions of the last messages are missing.
    ///
    /// The peer may stop when it has received all messages. Then this end cannot know whether the
    /// last ones arrived.
    fn is_last(&self) -> bool {
        self.lacks_completions_only(&self.counters.lock())
    }

    fn lacks_completions_only(&self, counters: &Counters) -> bool {
        let posted = counters.sent.saturating_add(self.config.queue_pairs);
        counters.received >= self.config.iters && posted >= self.config.iters
    }

    /// Returns what is new since `known` messages were received, or the failure.
    fn progress(&self, known: u32) -> Option<Result<Progress, StepError>> {
        let iters = self.config.iters;
        let mut counters = self.counters.lock();
        if let Some(failure) = counters.failure.take() {
            return Some(
                match failure.step() == SEND && self.lacks_completions_only(&counters) {
                    true => Ok(Progress::End(Outcome::Unacknowledged)),
                    false => Err(failure),
                },
            );
        }
        if counters.received >= iters && counters.sent >= iters {
            return Some(Ok(Progress::End(Outcome::Complete)));
        }
        // The limit event comes before the completion of the receive that caused it.
        if counters.short && !counters.used.is_empty() {
            counters.short = false;
            return Some(Ok(Progress::Short));
        }
        // On several queue pairs, an end may receive more messages than it waits for.
        let received = counters.received.min(iters);
        (received > known).then_some(Ok(Progress::Received(received)))
    }

    /// Keeps a used receive of the shared receive queue.
    fn keep(&self, receive: Operation<RecvBuf>) {
        let mut counters = self.counters.lock();
        if counters.used.push_within_capacity(receive).is_err() {
            let failure = StepError::new("receive", fmt!("more completed than were posted"));
            counters.failure.get_or_insert(failure);
        }
    }
}
