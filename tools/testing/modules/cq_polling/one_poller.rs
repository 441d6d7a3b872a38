// SPDX-License-Identifier: GPL-2.0

//! Tests that a queue that its owner polls has one poller at a time.
//!
//! While the owner handles a completion, another thread polls, and then drains a queue pair of the
//! queue. Neither may handle another completion at the same time.

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
        ConnectedQp,
        LIMIT,
        ONE_MESSAGE, //
    },
    Handled, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    },
};
use rrdma::{
    rdma::{
        cq::DirectQueue,
        dma::Direction,
        qp::QpCap, //
    },
    sync::{
        Msecs,
        OwnedQueue,
        TimedCompletion,
        WorkKind, //
    },
};

/// Number of messages; each has two completions.
const MESSAGES: u32 = 4;

/// Time in which others may start the next handler, while the first one runs.
const CHANCE: Msecs = Msecs::new(200);

/// Observations of the completion handlers.
#[pin_data]
struct Handlers {
    begun: Atomic<u32>,
    /// 1 if another handler ran while the first one did.
    met: Atomic<u32>,
    #[pin]
    first: TimedCompletion,
    #[pin]
    next: TimedCompletion,
}

impl Handlers {
    /// Handles a completion. Sleeps.
    fn handle(&self) {
        if self.begun.fetch_add(1, ordering::Full) > 0 {
            return self.next.complete();
        }
        self.first.complete();
        if self.next.wait_timeout(CHANCE) {
            self.met.store(1, ordering::Release);
        }
    }
}

/// Polls while another thread polls and drains. The handlers of all completions must run, one after
/// the other.
pub(crate) fn run(port_gid: &PortGid<'_>) -> Result<(), StepError> {
    let capacity = QpCap {
        sends: MESSAGES,
        receives: MESSAGES,
        send_sges: 1,
    };
    let entries = capacity
        .completions()
        .saturating_add(ONE_MESSAGE.completions());
    let queue = DirectQueue::new(port_gid.device().clone(), entries, 0, task::NAME)
        .and_then(|queue| Ok(Arc::new(queue, GFP_KERNEL)?))
        .step("direct queue")?;
    let cq = queue.completion_queue().clone();
    let drained = ConnectedQp::loopback(port_gid, cq.clone(), ONE_MESSAGE)?;
    let busy = ConnectedQp::loopback(port_gid, cq, capacity)?;
    let handlers = Arc::pin_init(
        pin_init!(Handlers {
            begun: Atomic::new(0),
            met: Atomic::new(0),
            first <- TimedCompletion::new(),
            next <- TimedCompletion::new(),
        }),
        GFP_KERNEL,
    );
    let handlers = handlers.step("handlers")?;
    let message = |direction| {
        let handlers = handlers.clone();
        Handled::new(port_gid, direction, move || handlers.handle())
    };
    for _ in 0..MESSAGES {
        let receive = message(Direction::FromDevice)?;
        busy.queue().post_receive(receive).step("receive")?;
        let send = message(Direction::ToDevice)?;
        let posted = busy
            .queue()
            .post_send(send, |message, chain| chain.send([message.buffer.sge()]));
        posted.step("send")?;
    }

    let gone = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL).step("completion")?;
    let (told, watched, polled) = (gone.clone(), handlers.clone(), queue.clone());
    let others = OwnedQueue::new(task::NAME, WorkKind::Ordinary, 1).step("workqueue")?;
    let drain = move || {
        watched.first.wait();
        polled.poll(1);
        drop(drained);
        told.complete();
    };
    others.try_spawn(GFP_KERNEL, drain).step("work item")?;
    let mut is_gone = false;
    // Until all completions are handled and the other queue pair is destroyed.
    let polled = port_gid.task.poll_for("completions", LIMIT, || {
        queue.poll(1);
        is_gone |= gone.wait_timeout(Msecs::ZERO);
        let handled = handlers.begun.load(ordering::Acquire) >= MESSAGES.saturating_mul(2);
        (is_gone && handled).then_some(())
    });
    // After an error, nobody polls any more, and nothing else wakes the other thread.
    handlers.first.complete();
    polled?;
    match handlers.met.load(ordering::Acquire) {
        0 => Ok(()),
        _ => Err(StepError::new(
            "poller",
            fmt!("two completions handled at the same time"),
        )),
    }
}
