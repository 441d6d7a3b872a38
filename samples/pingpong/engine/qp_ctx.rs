// SPDX-License-Identifier: GPL-2.0

//! The state of a queue pair in a ping-pong, and its completion handlers.

use super::{
    MessageProtocol,
    PingPong,
    Route,
    SEND, //
};
use crate::common::step_error::{
    Step,
    StepError, //
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
            QueuePair, //
        },
        wr::{
            Complete,
            Operation,
            Receive,
            Sge, //
        },
    },
    sync::IrqLock,
};

/// Name of the step in a [`StepError`]: checking the content of a message.
const MESSAGE: &str = "message";

/// A program that marks pages writes 0 to the first byte of each page of this size.
const PAGE: usize = 4096;

/// Returns the byte of a message at `offset`.
fn byte_at<P: MessageProtocol>(offset: usize) -> u8 {
    if P::MARKS_PAGES && offset % PAGE == 0 {
        0
    } else {
        P::FILL
    }
}

/// The message to send.
pub(crate) struct SendBuf<P: MessageProtocol> {
    buffer: DmaBuffer,
    route: Option<P::Route>,
}

/// A receive buffer.
pub(crate) struct RecvBuf {
    buffer: DmaBuffer,
}

impl RecvBuf {
    /// Allocates a receive for messages of `size` bytes. May sleep.
    pub(crate) fn new<P: MessageProtocol>(
        device: &DeviceRef,
        size: usize,
    ) -> Result<Operation<Self>> {
        let length = size.saturating_add(P::HEADER);
        let buffer = DmaBuffer::new(device.clone(), length, Direction::FromDevice)?;
        Operation::new(Self { buffer })
    }
}

/// The context of a queue pair.
#[pin_data]
pub(crate) struct QpCtx<P: MessageProtocol> {
    engine: Arc<PingPong>,
    #[pin]
    state: IrqLock<SendState<P>>,
}

struct SendState<P: MessageProtocol> {
    /// The message, while it is not posted.
    send_buf: Option<Operation<SendBuf<P>>>,
    /// A message was received, or this end starts: the next one may be sent.
    turn: bool,
}

impl<P: MessageProtocol> QpCtx<P> {
    /// Creates the context of a queue pair that sends messages of `size` bytes. May sleep.
    ///
    /// [`QpCtx::set_route`] must follow before the first message is sent.
    pub(crate) fn new(
        engine: &Arc<PingPong>,
        device: &DeviceRef,
        size: usize,
    ) -> Result<impl PinInit<Self, Error>, StepError> {
        let mut buffer = DmaBuffer::new(device.clone(), size, Direction::ToDevice).step(MESSAGE)?;
        for (offset, byte) in buffer.write().iter_mut().enumerate() {
            *byte = byte_at::<P>(offset);
        }
        let send_buf = SendBuf {
            buffer,
            route: None,
        };
        let state = SendState {
            send_buf: Some(Operation::new(send_buf).step(MESSAGE)?),
            turn: engine.config.begins,
        };
        let engine = engine.clone();
        Ok(try_pin_init!(Self {
            engine,
            state <- new_irq_lock!(state, "pingpong::SendState"),
        }? Error))
    }

    /// Sets the destination of the message. To be called before the first message is sent.
    pub(crate) fn set_route(&self, route: P::Route) {
        if let Some(send_buf) = &mut self.state.lock().send_buf {
            send_buf.route = Some(route);
        }
    }

    /// Sends the next message if messages remain, it is this end's turn, and the last one has
    /// completed.
    pub(super) fn advance(queue: &QueuePair<Self>) {
        let ctx = queue.context();
        if !ctx.engine.has_more() {
            return;
        }
        let Some(send_buf) = ctx.take_turn() else {
            return;
        };
        let posted = queue.post_send(send_buf, |message, chain| {
            let route = message.route.as_ref().ok_or(EINVAL)?;
            route.send(message.buffer.sge(), chain)
        });
        if let Err(unposted) = posted {
            let failure = StepError::new(SEND, fmt!("{:?}", unposted.error));
            ctx.engine.end(failure);
        }
    }

    /// Returns the message if it is this end's turn.
    fn take_turn(&self) -> Option<Operation<SendBuf<P>>> {
        let mut state = self.state.lock();
        let send_buf = state.turn.then(|| state.send_buf.take()).flatten()?;
        state.turn = false;
        Some(send_buf)
    }

    /// Sends another message. Either the last one was lost, or the reply to it.
    pub(super) fn resend(queue: &QueuePair<Self>) {
        let ctx = queue.context();
        ctx.engine.count(|counters| &mut counters.resent);
        ctx.state.lock().turn = true;
        Self::advance(queue);
    }

    /// Checks a received message.
    fn accept(&self, buffer: &mut DmaBuffer, length: usize) -> Result<(), StepError> {
        let bytes = buffer.read();
        if length != bytes.len() {
            let length = length.saturating_sub(P::HEADER);
            let wanted = bytes.len().saturating_sub(P::HEADER);
            return Err(StepError::new(
                MESSAGE,
                fmt!("got {length} bytes, expected {wanted}"),
            ));
        }
        if !self.engine.config.check {
            buffer.give_back();
            return Ok(());
        }
        let wrong = |(offset, byte): &(usize, &u8)| **byte != byte_at::<P>(*offset);
        let mut data = bytes.iter().skip(P::HEADER).enumerate();
        if let Some((offset, byte)) = data.find(wrong) {
            let wanted = byte_at::<P>(offset);
            return Err(StepError::new(
                MESSAGE,
                fmt!("got {byte:#04x}, expected {wanted:#04x} at byte {offset}"),
            ));
        }
        // Overwritten, so that stale data of this message fails the check of the next one.
        buffer.write().fill(!P::FILL);
        Ok(())
    }
}

impl<P: MessageProtocol> QpContext for QpCtx<P> {
    type QpType = P::QpType;

    fn failed(queue: &QueuePair<Self>, failure: cq::WcError) {
        queue.context().engine.failed("request", failure);
    }

    fn faulted(queue: &QueuePair<Self>, fault: Fault) {
        let failure = StepError::new("queue pair", fmt!("{fault}"));
        queue.context().engine.end(failure);
    }
}

impl<P: MessageProtocol> Complete<QpCtx<P>> for SendBuf<P> {
    fn complete(
        operation: Operation<Self>,
        queue: &QueuePair<QpCtx<P>>,
        completion: &Completion<'_>,
    ) {
        let ctx = queue.context();
        if let Err(failure) = completion.result() {
            return ctx.engine.failed(SEND, failure);
        }
        ctx.state.lock().send_buf = Some(operation);
        ctx.engine.count(|counters| &mut counters.sent);
        QpCtx::advance(queue);
        ctx.engine.wake.complete();
    }
}

impl<P: MessageProtocol> Receive<QpCtx<P>> for RecvBuf {
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

impl<P: MessageProtocol> Complete<QpCtx<P>> for RecvBuf {
    fn complete(
        mut operation: Operation<Self>,
        queue: &QueuePair<QpCtx<P>>,
        completion: &Completion<'_>,
    ) {
        let ctx = queue.context();
        if let Err(failure) = completion.result() {
            return ctx.engine.failed("receive", failure);
        }
        let length = completion
            .received()
            .map_or(0, |received| received.byte_len());
        if let Err(failure) = ctx.accept(&mut operation.buffer, length) {
            return ctx.engine.end(failure);
        }
        match queue.shared_receives() {
            Some(_) => ctx.engine.keep(operation),
            None => {
                if let Err(unposted) = queue.post_receive(operation) {
                    let failure = StepError::new("receive", fmt!("{:?}", unposted.error));
                    return ctx.engine.end(failure);
                }
            }
        }
        ctx.engine.count(|counters| &mut counters.received);
        ctx.state.lock().turn = true;
        QpCtx::advance(queue);
        ctx.engine.wake.complete();
    }
}
