// SPDX-License-Identifier: GPL-2.0

//! The messages of all queue pairs, and the receives that they share.

use crate::common::{
    failure::{
        Failure,
        Step, //
    },
    task::SampleTask, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    new_irq_lock,
    rdma::{
        cq::{
            self,
            Completion, //
        },
        device::DeviceRef,
        dma::{
            Direction,
            DmaBuffer, //
        },
        qp::{
            Fault,
            QpContext,
            QueuePair,
            Rc, //
        },
        srq::{
            Event,
            SharedReceiveQueue, //
        },
        wr::{
            Complete,
            Operation,
            Receive,
            Sge, //
        },
    },
    sync::{
        IrqLock,
        TimedCompletion, //
    },
};

/// What each byte of a message is, as the program has it or not: it does not look.
const FILL: u8 = 0x7b;

/// What the sending of a message is called.
const SEND: &str = "send";

/// The message of a queue pair.
pub(crate) struct SendBuf {
    buffer: DmaBuffer,
}

/// Room for a message of any of them.
pub(crate) struct RecvBuf {
    buffer: DmaBuffer,
}

impl RecvBuf {
    pub(crate) fn new(device: &DeviceRef, size: usize) -> Result<Operation<Self>> {
        let buffer = DmaBuffer::new(device.clone(), size, Direction::FromDevice)?;
        Operation::new(Self { buffer })
    }
}

/// What all queue pairs have in common.
#[pin_data]
pub(crate) struct SrqPingPong {
    wake: Arc<TimedCompletion>,
    iters: u32,
    begins: bool,
    #[pin]
    counters: IrqLock<Counters>,
}

struct Counters {
    sent: u32,
    received: u32,
    /// The shared queue has said that it is short of receives.
    short: bool,
    /// The receives that were used, with room for all.
    used: KVec<Operation<RecvBuf>>,
    failure: Option<Failure>,
}

/// What has happened since the task looked last.
pub(crate) enum Progress {
    /// So many messages have arrived now.
    Received(u32),
    /// There are few receives left.
    Short,
    /// All is done.
    Done {
        /// But the peer was gone before it acknowledged our last message.
        unacknowledged: bool,
    },
}

impl SrqPingPong {
    /// An engine for so many messages in each direction, with so many receives.
    pub(crate) fn new(
        task: &SampleTask,
        iters: u32,
        receives: u32,
        begins: bool,
    ) -> Result<Arc<Self>, Failure> {
        let counters = Counters {
            sent: 0,
            received: 0,
            short: false,
            used: KVec::with_capacity(receives as usize, GFP_KERNEL).step("receives")?,
            failure: None,
        };
        let init = pin_init!(Self {
            wake: task.wake().clone(),
            iters,
            begins,
            counters <- new_irq_lock!(counters, "samples::Counters"),
        });
        Arc::pin_init(init, GFP_KERNEL).step("engine")
    }

    /// Hears what the device says of the shared queue. Any context.
    pub(crate) fn on_event(&self, event: Event) {
        match event {
            Event::LimitReached => {
                self.counters.lock().short = true;
                self.wake.complete();
            }
            Event::Broken => self.end(Failure::new(
                "shared receive queue",
                fmt!("the device gave it up"),
            )),
        }
    }

    /// What is new to who knows of `known` messages; or why it is over.
    pub(crate) fn progress(&self, known: u32) -> Option<Result<Progress, Failure>> {
        let mut counters = self.counters.lock();
        let received = counters.received;
        if let Some(failure) = counters.failure.take() {
            // See `has_all`.
            let unacknowledged = received >= self.iters && failure.step() == SEND;
            return Some(
                unacknowledged
                    .then_some(Progress::Done { unacknowledged })
                    .ok_or(failure),
            );
        }
        if received >= self.iters && counters.sent >= self.iters {
            return Some(Ok(Progress::Done {
                unacknowledged: false,
            }));
        }
        // The device says so before the receive that it took last is completed.
        if counters.short && !counters.used.is_empty() {
            counters.short = false;
            return Some(Ok(Progress::Short));
        }
        (received > known).then_some(Ok(Progress::Received(received)))
    }

    /// Whether all messages of the peer have arrived. It may stop as soon as it has all
    /// of ours; whether it has the last ones, is then not to be known.
    pub(crate) fn has_all(&self) -> bool {
        self.counters.lock().received >= self.iters
    }

    /// Posts again what was used.
    pub(crate) fn refill(&self, shared: &SharedReceiveQueue<QpCtx>) -> Result<(), Failure> {
        // The lock is not to be held while it is posted.
        let next = || self.counters.lock().used.pop();
        while let Some(receive) = next() {
            shared.post(receive).step("receive")?;
        }
        Ok(())
    }

    /// The first failure is the one that counts.
    fn end(&self, failure: Failure) {
        self.counters.lock().failure.get_or_insert(failure);
        self.wake.complete();
    }

    /// What a request says that has failed: nothing, if it was merely flushed.
    fn failed(&self, step: &'static str, failure: cq::Failure) {
        if !failure.is_flush() {
            self.end(Failure::new(step, fmt!("{failure}")));
        }
    }
}

/// The context of a queue pair: who has its message.
#[pin_data]
pub(crate) struct QpCtx {
    engine: Arc<SrqPingPong>,
    #[pin]
    send_state: IrqLock<SendState>,
}

struct SendState {
    /// The message, when it is ours.
    send_buf: Option<Operation<SendBuf>>,
    /// The peer has answered.
    ours: bool,
}

impl QpCtx {
    pub(crate) fn new(
        engine: &Arc<SrqPingPong>,
        device: &DeviceRef,
        size: usize,
    ) -> Result<impl PinInit<Self, Error>, Failure> {
        let mut buffer =
            DmaBuffer::new(device.clone(), size, Direction::ToDevice).step("message")?;
        buffer.write().fill(FILL);
        let send_state = SendState {
            send_buf: Some(Operation::new(SendBuf { buffer }).step("message")?),
            ours: engine.begins,
        };
        let engine = engine.clone();
        Ok(try_pin_init!(Self {
            engine,
            send_state <- new_irq_lock!(send_state, "samples::SendState"),
        }? Error))
    }

    /// Sends the first message, if it is ours to begin.
    pub(crate) fn begin(queue: &QueuePair<Self>) {
        Self::advance(queue);
    }

    /// Sends the message if it is ours, and our turn, and not the end.
    fn advance(queue: &QueuePair<Self>) {
        let ctx = queue.context();
        let send_buf = {
            let mut send_state = ctx.send_state.lock();
            if !send_state.ours {
                return;
            }
            let Some(send_buf) = send_state.send_buf.take() else {
                return;
            };
            send_state.ours = false;
            send_buf
        };
        if ctx.engine.counters.lock().sent >= ctx.engine.iters {
            return;
        }
        let posted = queue.post_send(send_buf, |message, chain| {
            chain.send([message.buffer.sge()])
        });
        if let Err(unposted) = posted {
            ctx.engine
                .end(Failure::new(SEND, fmt!("{:?}", unposted.error)));
        }
    }
}

impl QpContext for QpCtx {
    type QpType = Rc;

    fn failed(queue: &QueuePair<Self>, failure: cq::Failure) {
        queue.context().engine.failed("request", failure);
    }

    fn faulted(queue: &QueuePair<Self>, fault: Fault) {
        let engine = &queue.context().engine;
        engine.end(Failure::new("queue pair", fmt!("{fault}")));
    }
}

impl Complete<QpCtx> for SendBuf {
    fn complete(operation: Operation<Self>, queue: &QueuePair<QpCtx>, completion: &Completion<'_>) {
        let ctx = queue.context();
        if let Err(failure) = completion.result() {
            return ctx.engine.failed(SEND, failure);
        }
        ctx.send_state.lock().send_buf = Some(operation);
        {
            let mut counters = ctx.engine.counters.lock();
            counters.sent = counters.sent.saturating_add(1);
        }
        QpCtx::advance(queue);
        ctx.engine.wake.complete();
    }
}

impl Receive<QpCtx> for RecvBuf {
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

impl Complete<QpCtx> for RecvBuf {
    fn complete(
        mut operation: Operation<Self>,
        queue: &QueuePair<QpCtx>,
        completion: &Completion<'_>,
    ) {
        let ctx = queue.context();
        if let Err(failure) = completion.result() {
            return ctx.engine.failed("receive", failure);
        }
        let length = completion
            .received()
            .map_or(0, |received| received.byte_len());
        let wanted = operation.buffer.read().len();
        operation.buffer.give_back();
        if length != wanted {
            return ctx.engine.end(Failure::new(
                "message",
                fmt!("{length} bytes and not {wanted}"),
            ));
        }
        {
            let mut counters = ctx.engine.counters.lock();
            counters.received = counters.received.saturating_add(1);
            if counters.used.push_within_capacity(operation).is_err() {
                let failure = Failure::new("receive", fmt!("there are more than were posted"));
                counters.failure.get_or_insert(failure);
            }
        }
        ctx.send_state.lock().ours = true;
        QpCtx::advance(queue);
        ctx.engine.wake.complete();
    }
}
