// SPDX-License-Identifier: GPL-2.0

//! Tests a completion queue with too few entries.
//!
//! If the completion of a work request is lost, its memory is leaked, because the device may still
//! use it. Receives of a shared receive queue are not: the queue frees them when it is destroyed.
//! So the test loses completions of those.

use crate::{
    common::{
        port_gid::PortGid,
        step_error::{
            Step,
            StepError, //
        },
        task, //
    },
    pair::{
        self,
        nothing_left,
        CompletionSink,
        Work,
        LIMIT,
        ONE_MESSAGE, //
    },
};
use kernel::prelude::*;
use rrdma::rdma::{
    cq::{
        CompletionQueue,
        NotifiedQueue,
        Poll, //
    },
    device::Mtu,
    dma::Direction,
    qp::QpInitAttr,
    srq::SharedReceiveQueue, //
};

/// Maximum number of messages. A device may create more entries than requested.
const MESSAGES: u32 = 128;

/// Sends messages to a queue pair whose completions nobody polls, until a completion is lost.
pub(crate) fn run(port_gid: &PortGid<'_>) -> Result<(), StepError> {
    let (pd, device) = (&port_gid.pd, port_gid.device());
    let shared = SharedReceiveQueue::<CompletionSink>::new(pd.clone(), MESSAGES, |_| {})
        .step("shared receive queue")?;
    let entries = ONE_MESSAGE.completions();
    let sends = CompletionQueue::alloc(device.clone(), entries, 0, Poll::SoftIrq, task::NAME)
        .step("completion queue")?;
    // An overrun wakes the task even if the queue is not armed.
    let wake = port_gid.task.wake().clone();
    let mut small = NotifiedQueue::new(device.clone(), 1, 0, wake, task::NAME)
        .step("completion queue of one")?;
    let cq = small.completion_queue().clone();

    let receiver = QpInitAttr::new(pd.clone(), cq.clone(), ONE_MESSAGE);
    let receiver = pair::init_qp(port_gid, receiver.with_shared_receives(shared.clone()))?;
    let sender = pair::init_qp(port_gid, QpInitAttr::new(pd.clone(), sends, ONE_MESSAGE))?;
    let (sender, receiver) = pair::join((port_gid, sender), (port_gid, receiver), Mtu::Bytes256)?;

    let mut message = Work::new(device, 8, Direction::ToDevice)?;
    let mut messages = 0u32;
    loop {
        if messages == MESSAGES {
            return Err(StepError::new(
                "overrun",
                fmt!("no completion lost in {MESSAGES} messages"),
            ));
        }
        let receive = Work::new(device, 8, Direction::FromDevice)?;
        shared.post(receive).step("receive")?;
        sender.post("send", message, |message, chain| {
            chain.send([message.buffer.sge()])
        })?;
        messages = messages.saturating_add(1);
        let back = port_gid.task.wait_for("overrun", LIMIT, || {
            let back = sender.try_take();
            (back.is_some() || cq.is_broken()).then_some(back)
        })?;
        match back {
            Some(back) if !cq.is_broken() => message = back.work,
            _ => break,
        }
    }

    let mut handled = 0u32;
    while small.poll(1) == 1 {
        handled = handled.saturating_add(1);
        drop(receiver.try_take());
    }
    if handled >= messages {
        return Err(StepError::new(
            "overrun",
            fmt!("none of {messages} completions is lost"),
        ));
    }
    // Polling has made room for the marker of the drain.
    receiver.queue().drain();
    nothing_left("drained", small.poll(1))?;
    pr_info!("overrun: lost a completion of {messages} messages\n");
    Ok(())
}
