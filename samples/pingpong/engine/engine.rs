// SPDX-License-Identifier: GPL-2.0

//! The messages of a ping-pong, from the first to the last, on one queue pair or on
//! several. Each end of a queue pair answers when it has got a message and its own last
//! one has completed.
//!
//! - [`qp_ctx`]: a queue pair's part.
//! - [`polled_queue`]: who polls the completion queue.
//! - [`run`]: the task's part.

// A sample uses a part of it.
#![allow(dead_code)]

pub(crate) mod polled_queue;
pub(crate) mod qp_ctx;
pub(crate) mod run;

use crate::common::{
    failure::{
        Failure,
        Step, //
    },
    peer::Peer,
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

/// The step of the exchange of messages, and of sending one.
const STEP: &str = "messages";
const SEND: &str = "send";

/// How a type of queue pairs carries messages, and what the program has in them.
pub(crate) trait MessageProtocol: Send + Sync + Sized + 'static {
    /// The type of the queue pairs.
    type QpType: QpType;

    /// The way of a message, if the queue pair does not know it.
    type Route: Route<Self>;

    /// Bytes of a header ahead of each message that is received.
    const HEADER: usize = 0;

    /// The program has a mark in each page of a message; otherwise all bytes are alike.
    const MARKS_PAGES: bool;

    /// A lost message is sent again by this end, because the queue pair does not.
    const RESENDS: bool;
}

/// The way of a message to the peer.
pub(crate) trait Route<P: MessageProtocol>: Sized + Send {
    /// Finds it.
    fn find(pd: &Arc<ProtectionDomain>, peer: &Peer<'_>) -> Result<Self>;

    /// Sends a message.
    fn send<'a>(&'a self, message: Sge<'a>, chain: &mut Chain<'a, '_, QpCtx<P>>) -> Result;
}

/// A queue pair that is connected knows it.
impl<P: MessageProtocol<QpType: Connected>> Route<P> for () {
    fn find(_: &Arc<ProtectionDomain>, _: &Peer<'_>) -> Result {
        Ok(())
    }

    fn send<'a>(&'a self, message: Sge<'a>, chain: &mut Chain<'a, '_, QpCtx<P>>) -> Result {
        chain.send([message])
    }
}

/// What is to be exchanged.
pub(crate) struct PingPongConfig {
    /// Messages in each direction, of all queue pairs.
    pub(crate) iters: u32,
    /// This end sends the first message of each queue pair.
    pub(crate) begins: bool,
    /// Each byte that is received is compared.
    pub(crate) check: bool,
    pub(crate) queue_pairs: u32,
    /// Receives that the queue pairs share.
    pub(crate) shared_receives: u32,
}

/// The messages of all queue pairs.
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
    /// Shared receives that were used, with room for all.
    used: KVec<Operation<RecvBuf>>,
    /// The first failure.
    failure: Option<Failure>,
}

/// What has happened since the task looked last.
pub(crate) enum Progress {
    /// So many messages have arrived now.
    Received(u32),
    /// Few of the shared receives are left.
    Short,
    /// All is done.
    Done,
    /// All is done, but the peer was gone before it acknowledged the last messages.
    Unacknowledged,
}

impl PingPong {
    pub(crate) fn new(task: &SampleTask, config: PingPongConfig) -> Result<Arc<Self>, Failure> {
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

    /// A shared receive that was used. May be called in any context.
    pub(crate) fn take_used(&self) -> Option<Operation<RecvBuf>> {
        self.counters.lock().used.pop()
    }

    /// Ends the ping-pong; the first failure counts. Any context.
    pub(crate) fn end(&self, failure: Failure) {
        self.counters.lock().failure.get_or_insert(failure);
        self.wake.complete();
    }

    /// Ends the ping-pong if a request has failed, and was not merely flushed.
    fn failed(&self, step: &'static str, failure: cq::Failure) {
        if !failure.is_flush() {
            self.end(Failure::new(step, fmt!("{failure}")));
        }
    }

    /// Records that a message was sent.
    fn add_sent(&self) {
        let mut counters = self.counters.lock();
        counters.sent = counters.sent.saturating_add(1);
    }

    /// Records that a message has arrived.
    fn add_received(&self) {
        let mut counters = self.counters.lock();
        counters.received = counters.received.saturating_add(1);
    }

    /// Records that a message is sent in place of a lost one.
    fn add_resent(&self) {
        let mut counters = self.counters.lock();
        counters.resent = counters.resent.saturating_add(1);
    }

    /// Whether there are messages to be sent.
    fn has_more(&self) -> bool {
        let counters = self.counters.lock();
        counters.sent < self.config.iters.saturating_add(counters.resent)
    }

    /// Whether only the completion of the last messages is missing. The peer may stop as
    /// soon as it has all messages; whether it has the last ones is then not to be known.
    fn is_last(&self) -> bool {
        self.lacks_completions_only(&self.counters.lock())
    }

    fn lacks_completions_only(&self, counters: &Counters) -> bool {
        let posted = counters.sent.saturating_add(self.config.queue_pairs);
        counters.received >= self.config.iters && posted >= self.config.iters
    }

    /// What is new to a task that knows of `known` messages; or why the exchange ended.
    fn progress(&self, known: u32) -> Option<Result<Progress, Failure>> {
        let iters = self.config.iters;
        let mut counters = self.counters.lock();
        if let Some(failure) = counters.failure.take() {
            return Some(
                match failure.step() == SEND && self.lacks_completions_only(&counters) {
                    true => Ok(Progress::Unacknowledged),
                    false => Err(failure),
                },
            );
        }
        if counters.received >= iters && counters.sent >= iters {
            return Some(Ok(Progress::Done));
        }
        // The device says so before the receive that it took last is completed.
        if counters.short && !counters.used.is_empty() {
            counters.short = false;
            return Some(Ok(Progress::Short));
        }
        (counters.received > known).then_some(Ok(Progress::Received(counters.received)))
    }

    /// Keeps a shared receive that was used.
    fn keep(&self, receive: Operation<RecvBuf>) {
        let mut counters = self.counters.lock();
        if counters.used.push_within_capacity(receive).is_err() {
            let failure = Failure::new("receive", fmt!("there are more than were posted"));
            counters.failure.get_or_insert(failure);
        }
    }
}
