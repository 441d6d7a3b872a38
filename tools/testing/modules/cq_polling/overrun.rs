// SPDX-License-Identifier: GPL-2.0

//! A completion queue that is too small for what is posted.
//!
//! What a request whose completion is lost names is lost with it, as nobody can say
//! that the device is done with it; but for receives of a shared queue, which has them
//! until it goes. So it is those that are lost here.

use crate::{
    common::failure::{
        Failure,
        Step, //
    },
    loopback::{
        nothing_left,
        CompletionSink,
        Loopback,
        CAPACITY,
        LIMIT, //
    },
    OWNER, //
};
use kernel::prelude::*;
use rrdma::rdma::{
    cq::{
        CompletionQueue,
        NotifiedQueue,
        Poll, //
    },
    dma::Direction,
    srq::SharedReceiveQueue, //
};

/// Messages at most; a device may make a queue larger than it was asked to.
const MESSAGES: u32 = 128;

/// Sends messages to a queue pair whose completions nobody polls, until one is lost.
pub(crate) fn run(loopback: &Loopback<'_>) -> Result<(), Failure> {
    let shared =
        SharedReceiveQueue::<CompletionSink>::new(loopback.port_gid.pd.clone(), MESSAGES, |_| {})
            .step("shared receive queue")?;
    let entries = CAPACITY.completions();
    let sends = CompletionQueue::alloc(loopback.device(), entries, 0, Poll::SoftIrq, OWNER)
        .step("completion queue")?;
    // The task is woken when it breaks, although it is not armed.
    let wake = loopback.task().wake().clone();
    let mut small =
        NotifiedQueue::new(loopback.device(), 1, 0, wake, OWNER).step("completion queue of one")?;
    let cq = small.completion_queue().clone();

    let receiver = loopback.init_attr(cq.clone(), CAPACITY);
    let receiver = loopback.initialised(receiver.with_shared_receives(shared.clone()))?;
    let sender = loopback.initialised(loopback.init_attr(sends, CAPACITY))?;
    let (here, there) = (sender.number(), receiver.number());
    let receiver = loopback.connect(receiver, here)?;
    let sender = loopback.connect(sender, there)?;

    let sent = &sender.queue_pair().context().completed;
    let mut message = loopback.message(Direction::ToDevice)?;
    let mut messages = 0u32;
    loop {
        if messages == MESSAGES {
            return Err(Failure::new("overrun", fmt!("none in {MESSAGES} messages")));
        }
        let receive = loopback.message(Direction::FromDevice)?;
        shared.post(receive).step("receive")?;
        let posted = sender
            .queue_pair()
            .post_send(message, |message, chain| chain.send([message.buffer.sge()]));
        posted.step("send")?;
        messages = messages.saturating_add(1);
        let back = loopback.task().wait_for("overrun", LIMIT, || {
            let back = sent.lock().sent.take();
            (back.is_some() || cq.is_broken()).then_some(back)
        })?;
        match back {
            Some(back) if !cq.is_broken() => message = back,
            _ => break,
        }
    }

    let queue = receiver.queue_pair();
    let mut handled = 0u32;
    while small.poll(1) == 1 {
        handled = handled.saturating_add(1);
        let received = queue.context().completed.lock().received.take();
        drop(received);
    }
    if handled >= messages {
        return Err(Failure::new("overrun", fmt!("all {messages} are there")));
    }
    // There is room again, for the marker of its drain.
    queue.drain();
    nothing_left("drained", small.poll(1))?;
    pr_info!("lost a completion of {messages}, as the queue was told\n");
    Ok(())
}
