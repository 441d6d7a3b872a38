// SPDX-License-Identifier: GPL-2.0

//! Tests a completion queue with too few entries.
//!
//! If the completion of a work request is lost, its memory is leaked, because the device may still
//! use it. Receives of a shared receive queue are not: the queue frees them when it is destroyed.
//! So the test loses completions of those.

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

/// Maximum number of messages. A device may create more entries than requested.
const MESSAGES: u32 = 128;

/// Sends messages to a queue pair whose completions nobody polls, until a completion is lost.
pub(crate) fn run(loopback: &Loopback<'_>) -> Result<(), Failure> {
    let shared =
        SharedReceiveQueue::<CompletionSink>::new(loopback.port_gid.pd.clone(), MESSAGES, |_| {})
            .step("shared receive queue")?;
    let entries = CAPACITY.completions();
    let sends = CompletionQueue::alloc(loopback.device(), entries, 0, Poll::SoftIrq, OWNER)
        .step("completion queue")?;
    // An overrun wakes the task even if the queue is not armed.
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
            return Err(Failure::new(
                "overrun",
                fmt!("no completion lost in {MESSAGES} messages"),
            ));
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
        return Err(Failure::new(
            "overrun",
            fmt!("none of {messages} completions is lost"),
        ));
    }
    // Polling has made room for the marker of the drain.
    queue.drain();
    nothing_left("drained", small.poll(1))?;
    pr_info!("overrun: lost a completion of {messages} messages\n");
    Ok(())
}
