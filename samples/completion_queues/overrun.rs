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
    nothing_left,
    Bench,
    Desk,
    CAPACITY,
    LIMIT,
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
    qp::Parts,
    srq::SharedReceiveQueue, //
};

/// Messages at most; a device may make a queue larger than it was asked to.
const MESSAGES: u32 = 128;

/// Sends messages to a queue pair whose completions nobody polls, until one is lost.
pub(crate) fn run(bench: &Bench<'_>) -> Result<(), Failure> {
    let shared = SharedReceiveQueue::<Desk>::new(bench.place.pd.clone(), MESSAGES, |_| {})
        .step("shared receive queue")?;
    let entries = CAPACITY.completions();
    let sends = CompletionQueue::private(bench.device(), entries, 0, Poll::SoftIrq, OWNER)
        .step("completion queue")?;
    // The job is woken when it breaks, although it is not armed.
    let wake = bench.place.job.wake().clone();
    let mut small =
        NotifiedQueue::new(bench.device(), 1, 0, wake, OWNER).step("completion queue of one")?;
    let cq = small.completion_queue().clone();

    let receiver = Parts::new(bench.place.pd.clone(), cq.clone(), CAPACITY);
    let receiver = bench.begin(receiver.with_shared_receives(shared.clone()))?;
    let sender = bench.begin(Parts::new(bench.place.pd.clone(), sends, CAPACITY))?;
    let (here, there) = (sender.number(), receiver.number());
    let receiver = bench.finish(receiver, here)?;
    let sender = bench.finish(sender, there)?;

    let sent = &sender.queue_pair().context().returned;
    let mut note = bench.note(Direction::ToDevice)?;
    let mut messages = 0u32;
    loop {
        if messages == MESSAGES {
            return Err(Failure::new("overrun", fmt!("none in {MESSAGES} messages")));
        }
        let posted = shared.post(bench.note(Direction::FromDevice)?);
        posted.map_err(|unposted| unposted.error).step("receive")?;
        let posted = sender
            .queue_pair()
            .post_send(note, |note, chain| chain.send([note.buffer.sge()]));
        posted.map_err(|unposted| unposted.error).step("send")?;
        messages = messages.saturating_add(1);
        let back = bench.place.job.wait_for("overrun", LIMIT, || {
            let back = sent.lock().sent.take();
            (back.is_some() || cq.is_broken()).then_some(back)
        })?;
        match back {
            Some(back) if !cq.is_broken() => note = back,
            _ => break,
        }
    }

    let queue = receiver.queue_pair();
    let mut handled = 0u32;
    while small.poll(1) == 1 {
        handled = handled.saturating_add(1);
        let received = queue.context().returned.lock().received.take();
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
