// SPDX-License-Identifier: GPL-2.0

//! The messages, from the first to the last.

use super::{
    qp_setup::Queue,
    settings::Settings,
    Route,
    Transport, //
};
use crate::common::{
    failure::{
        Failure,
        Step, //
    },
    task::{
        SampleTask,
        Summary, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    cpu, new_irq_lock,
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
            QueuePair, //
        },
        wr::{
            Complete,
            Operation,
            Receive,
            Sge, //
        },
    },
    sync::{
        Deadline,
        IrqLock,
        Msecs,
        TimedCompletion, //
    },
};

/// How long a message that nothing guarantees may take before it is taken for lost.
const LOST: Msecs = Msecs::new(400);

/// What the exchange of messages is called, and the sending of one.
const STEP: &str = "messages";
const SEND: &str = "send";
const MESSAGE: &str = "message";

/// The program writes 0 at the beginning of each page of this size, and `FILL` else.
const PAGE: usize = 4096;
const FILL: u8 = 0x7b;

/// The byte of a message at this place.
fn byte_at<T: Transport>(place: usize) -> u8 {
    if T::MARKS_PAGES && place % PAGE == 0 {
        0
    } else {
        FILL
    }
}

/// The message that is sent.
pub(crate) struct SendBuf<T: Transport> {
    buffer: DmaBuffer,
    route: Option<T::Route>,
}

/// Room for a message.
pub(crate) struct RecvBuf {
    buffer: DmaBuffer,
}

impl RecvBuf {
    pub(super) fn new<T: Transport>(
        device: &DeviceRef,
        settings: &Settings,
    ) -> Result<Operation<Self>> {
        let length = settings.size.saturating_add(T::HEADER);
        let buffer = DmaBuffer::new(device.clone(), length, Direction::FromDevice)?;
        Operation::new(Self { buffer })
    }
}

/// The context of the queue pair: who has the message.
#[pin_data]
pub(crate) struct QpCtx<T: Transport> {
    wake: Arc<TimedCompletion>,
    check: bool,
    #[pin]
    state: IrqLock<PingPong<T>>,
}

struct PingPong<T: Transport> {
    /// The message, when it is ours.
    send_buf: Option<Operation<SendBuf<T>>>,
    /// It is our turn.
    turn: bool,
    /// Messages that are still to be sent.
    left: u32,
    /// Messages that have been sent, and those of the peer.
    sent: u32,
    received: u32,
    /// Why it ended.
    failure: Option<Failure>,
}

/// What has happened since the task looked last.
enum Progress {
    /// So many messages have arrived now.
    Received(u32),
    /// All is done.
    Done,
    /// All is done, but the peer was gone before it acknowledged our last message.
    Unacknowledged,
}

impl<T: Transport> QpCtx<T> {
    pub(super) fn new(
        task: &SampleTask,
        settings: &Settings,
        device: &DeviceRef,
    ) -> Result<impl PinInit<Self, Error>, Failure> {
        let mut buffer =
            DmaBuffer::new(device.clone(), settings.size, Direction::ToDevice).step(MESSAGE)?;
        for (place, byte) in buffer.write().iter_mut().enumerate() {
            *byte = byte_at::<T>(place);
        }
        let send_buf = SendBuf {
            buffer,
            route: None,
        };
        let state = PingPong {
            send_buf: Some(Operation::new(send_buf).step(MESSAGE)?),
            turn: settings.is_client(),
            left: settings.iters,
            sent: 0,
            received: 0,
            failure: None,
        };
        let (wake, check) = (task.wake().clone(), settings.check);
        Ok(try_pin_init!(Self {
            wake,
            check,
            state <- new_irq_lock!(state, "samples::PingPong"),
        }? Error))
    }

    /// Tells the message the way, before it is sent for the first time.
    pub(super) fn set_route(&self, route: Option<T::Route>) {
        if let Some(send_buf) = &mut self.state.lock().send_buf {
            send_buf.route = route;
        }
    }

    /// Sends the message if it is ours, and our turn, and not the end.
    fn advance(queue: &QueuePair<Self>) {
        let ctx = queue.context();
        let send_buf = {
            let mut state = ctx.state.lock();
            if !state.turn || state.left == 0 {
                return;
            }
            let Some(send_buf) = state.send_buf.take() else {
                return;
            };
            state.turn = false;
            state.left = state.left.saturating_sub(1);
            send_buf
        };
        let posted = queue.post_send(send_buf, |message, chain| {
            let route = message.route.as_ref().ok_or(EINVAL)?;
            route.send(message.buffer.sge(), chain)
        });
        if let Err(unposted) = posted {
            ctx.end(Failure::new(SEND, fmt!("{:?}", unposted.error)));
        }
    }

    /// The first failure is the one that counts.
    fn end(&self, failure: Failure) {
        self.state.lock().failure.get_or_insert(failure);
        self.wake.complete();
    }

    /// What a request says that has failed: nothing, if it was merely flushed.
    fn failed(&self, step: &'static str, failure: cq::Failure) {
        if !failure.is_flush() {
            self.end(Failure::new(step, fmt!("{failure}")));
        }
    }

    /// Looks at a message that has arrived.
    fn accept(&self, buffer: &mut DmaBuffer, length: usize) -> Result<(), Failure> {
        let bytes = buffer.read();
        if length != bytes.len() {
            let length = length.saturating_sub(T::HEADER);
            let wanted = bytes.len().saturating_sub(T::HEADER);
            return Err(Failure::new(
                MESSAGE,
                fmt!("{length} bytes and not {wanted}"),
            ));
        }
        let wrong = |(place, byte): &(usize, &u8)| **byte != byte_at::<T>(*place);
        let data = bytes.iter().skip(T::HEADER);
        let found = data.enumerate().find(wrong).filter(|_| self.check);
        if let Some((place, byte)) = found {
            let wanted = byte_at::<T>(place);
            return Err(Failure::new(
                MESSAGE,
                fmt!("{byte:#04x} and not {wanted:#04x} at {place}"),
            ));
        }
        if self.check {
            // So that the next one cannot be right because this one was.
            buffer.write().fill(!FILL);
        } else {
            buffer.give_back();
        }
        Ok(())
    }
}

impl<T: Transport> QpContext for QpCtx<T> {
    type QpType = T::QpType;

    fn failed(queue: &QueuePair<Self>, failure: cq::Failure) {
        queue.context().failed("request", failure);
    }

    fn faulted(queue: &QueuePair<Self>, fault: Fault) {
        queue
            .context()
            .end(Failure::new("queue pair", fmt!("{fault}")));
    }
}

impl<T: Transport> Complete<QpCtx<T>> for SendBuf<T> {
    fn complete(
        operation: Operation<Self>,
        queue: &QueuePair<QpCtx<T>>,
        completion: &Completion<'_>,
    ) {
        let ctx = queue.context();
        if let Err(failure) = completion.result() {
            return ctx.failed(SEND, failure);
        }
        {
            let mut state = ctx.state.lock();
            state.sent = state.sent.saturating_add(1);
            state.send_buf = Some(operation);
        }
        QpCtx::advance(queue);
    }
}

impl<T: Transport> Receive<QpCtx<T>> for RecvBuf {
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

impl<T: Transport> Complete<QpCtx<T>> for RecvBuf {
    fn complete(
        mut operation: Operation<Self>,
        queue: &QueuePair<QpCtx<T>>,
        completion: &Completion<'_>,
    ) {
        let ctx = queue.context();
        if let Err(failure) = completion.result() {
            return ctx.failed("receive", failure);
        }
        let length = completion
            .received()
            .map_or(0, |received| received.byte_len());
        if let Err(failure) = ctx.accept(&mut operation.buffer, length) {
            return ctx.end(failure);
        }
        if let Err(unposted) = queue.post_receive(operation) {
            return ctx.end(Failure::new("receive", fmt!("{:?}", unposted.error)));
        }
        {
            let mut state = ctx.state.lock();
            state.received = state.received.saturating_add(1);
            state.turn = true;
        }
        QpCtx::advance(queue);
    }
}

impl<T: Transport> PingPong<T> {
    /// Nothing is missing but the peer's acknowledgement of our last message. It may stop as
    /// soon as it has all messages; whether it has the last one, is then not to be known.
    fn is_last(&self, iters: u32) -> bool {
        self.received >= iters && self.sent.saturating_add(1) >= iters
    }
}

impl<T: Transport> QpCtx<T> {
    /// Whether nothing is missing but the end of our last message.
    fn is_last(&self, iters: u32) -> bool {
        self.state.lock().is_last(iters)
    }

    /// What is new to who knows of `known` messages; or why it is over.
    fn progress(&self, iters: u32, known: u32) -> Option<Result<Progress, Failure>> {
        let mut state = self.state.lock();
        if let Some(failure) = state.failure.take() {
            let unacknowledged = state.is_last(iters) && failure.step() == SEND;
            return Some(
                unacknowledged
                    .then_some(Progress::Unacknowledged)
                    .ok_or(failure),
            );
        }
        if state.received >= iters && state.sent >= iters {
            return Some(Ok(Progress::Done));
        }
        (state.received > known).then_some(Ok(Progress::Received(state.received)))
    }

    /// Puts a new message into play, whoever had the last one.
    fn resend(queue: &QueuePair<Self>) {
        {
            let mut state = queue.context().state.lock();
            state.turn = true;
            state.left = state.left.saturating_add(1);
        }
        Self::advance(queue);
    }
}

/// How it went.
pub(super) struct RoundResult {
    received: u32,
    /// Messages that were sent once more.
    again: u32,
    unacknowledged: bool,
}

/// Plays until the last message has been sent and received, or it is over for another
/// reason.
///
/// # Errors
///
/// What failed, or that the peer is silent.
pub(super) fn run<T: Transport>(
    task: &SampleTask,
    settings: &Settings,
    queue: &mut Queue,
    pair: &QueuePair<QpCtx<T>>,
) -> Result<RoundResult, Failure> {
    let mut round = RoundResult {
        received: 0,
        again: 0,
        unacknowledged: false,
    };
    let mut over = Deadline::after(settings.patience);
    QpCtx::advance(pair);
    loop {
        let limit = if T::RESENDS { LOST } else { settings.patience };
        let ctx = pair.context();
        let progress = wait_progress(task, queue, limit, || {
            ctx.progress(settings.iters, round.received)
        })?;
        match progress.transpose()? {
            Some(Progress::Received(received)) => {
                round.received = received;
                over = Deadline::after(settings.patience);
            }
            Some(done) => {
                round.received = settings.iters;
                round.unacknowledged = matches!(done, Progress::Unacknowledged);
                return Ok(round);
            }
            None if over.left() != Msecs::new(0) => {
                round.again = round.again.saturating_add(1);
                QpCtx::resend(pair);
            }
            None if T::RESENDS && round.received != 0 => return Ok(round),
            // Some devices send 7 retries for ever: soft-RoCE does.
            None if ctx.is_last(settings.iters) => {
                round.unacknowledged = true;
                return Ok(round);
            }
            None => {
                let (received, iters) = (round.received, settings.iters);
                return Err(Failure::new(
                    "peer",
                    fmt!("silent after {received} of {iters} messages"),
                ));
            }
        }
    }
}

/// Handles completions until `ready` answers; `None` if it does not within `limit`.
fn wait_progress<R>(
    task: &SampleTask,
    queue: &mut Queue,
    limit: Msecs,
    mut ready: impl FnMut() -> Option<R>,
) -> Result<Option<R>, Failure> {
    if !queue.is_polled() {
        let progress = task.wait_for(STEP, limit, || match queue.handle() {
            Ok(()) => ready().map(Ok),
            Err(error) => Some(Err(error)),
        });
        return match progress {
            Ok(answer) => answer.step(STEP).map(Some),
            Err(stopped) if task.is_stopped() => Err(stopped),
            Err(_) => Ok(None),
        };
    }
    let deadline = Deadline::after(limit);
    loop {
        task.proceed(STEP)?;
        queue.handle().step(STEP)?;
        if let Some(answer) = ready() {
            return Ok(Some(answer));
        }
        if deadline.left() == Msecs::new(0) {
            return Ok(None);
        }
        cpu::cond_resched();
    }
}

impl RoundResult {
    /// The result of a game that took so many microseconds.
    pub(super) fn line(&self, settings: &Settings, time: i64) -> Summary {
        let (iters, size) = (settings.iters, settings.size);
        let lost = iters.saturating_sub(self.received);
        let end = match (lost, self.again, self.unacknowledged) {
            (0, 0, false) => Summary::new(fmt!("")),
            (0, 0, true) => Summary::new(fmt!(", the last one not acknowledged")),
            (lost, again, _) => Summary::new(fmt!(", {lost} lost, {again} sent again")),
        };
        let received = self.received;
        Summary::new(fmt!(
            "{received} of {iters} messages of {size} bytes in {time} us{end}"
        ))
    }
}
