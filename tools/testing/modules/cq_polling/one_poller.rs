// SPDX-License-Identifier: GPL-2.0

//! Tests that a queue that its owner polls has one poller at a time.
//!
//! While the owner handles a completion, another thread polls, and then drains a queue pair of the
//! queue. Neither may handle another completion at the same time.

use crate::{
    common::failure::{
        Failure,
        Step, //
    },
    loopback::{
        CompletionSink,
        Loopback,
        Message,
        CAPACITY,
        LIMIT, //
    },
    OWNER, //
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
        cq::{
            Completion,
            DirectQueue, //
        },
        dma::Direction,
        qp::{
            QpCap,
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
        Msecs,
        OwnedQueue,
        QueueFlags,
        TimedCompletion, //
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

/// A message, in either direction.
struct ObservedMessage {
    message: Message,
    handlers: Arc<Handlers>,
}

impl Complete<CompletionSink> for ObservedMessage {
    /// May sleep here: its callers are a poll by the owner and a drain.
    fn complete(observed: Operation<Self>, _: &QueuePair<CompletionSink>, _: &Completion<'_>) {
        let handlers = &observed.handlers;
        if handlers.begun.fetch_add(1, ordering::Full) > 0 {
            return handlers.next.complete();
        }
        handlers.first.complete();
        if handlers.next.wait_timeout(CHANCE) {
            handlers.met.store(1, ordering::Release);
        }
    }
}

impl Receive<CompletionSink> for ObservedMessage {
    fn buffer(&self) -> Sge<'_> {
        self.message.buffer()
    }
}

/// Polls while another thread polls and drains. The handlers of all completions must run, one after
/// the other.
pub(crate) fn run(loopback: &Loopback<'_>) -> Result<(), Failure> {
    let capacity = QpCap {
        sends: MESSAGES,
        receives: MESSAGES,
        send_sges: 1,
    };
    let entries = capacity
        .completions()
        .saturating_add(CAPACITY.completions());
    let queue = DirectQueue::new(loopback.device(), entries, 0, OWNER)
        .and_then(|queue| Ok(Arc::new(queue, GFP_KERNEL)?))
        .step("direct queue")?;
    let cq = queue.completion_queue().clone();
    let drained = loopback.connected(cq.clone(), CAPACITY)?;
    let busy = loopback.connected(cq, capacity)?;
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
    for _ in 0..MESSAGES {
        let receive = observed(loopback, Direction::FromDevice, &handlers)?;
        busy.queue_pair().post_receive(receive).step("receive")?;
        let send = observed(loopback, Direction::ToDevice, &handlers)?;
        let posted = busy
            .queue_pair()
            .post_send(send, |observed, chain| chain.send([observed.buffer()]));
        posted.step("send")?;
    }

    let gone = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL).step("completion")?;
    let (told, watched, polled) = (gone.clone(), handlers.clone(), queue.clone());
    let others = OwnedQueue::new(OWNER, QueueFlags::UNBOUND, 1).step("workqueue")?;
    let drain = move || {
        watched.first.wait();
        polled.poll(1);
        drop(drained);
        told.complete();
    };
    others.try_spawn(GFP_KERNEL, drain).step("work item")?;
    let polled = poll(loopback, &queue, &handlers, &gone);
    // After an error, nobody polls any more, and nothing else wakes the other thread.
    handlers.first.complete();
    polled?;
    match handlers.met.load(ordering::Acquire) {
        0 => Ok(()),
        _ => Err(Failure::new(
            "poller",
            fmt!("two completions handled at the same time"),
        )),
    }
}

/// Polls until all completions are handled and the other queue pair is destroyed.
fn poll(
    loopback: &Loopback<'_>,
    queue: &DirectQueue,
    handlers: &Handlers,
    gone: &TimedCompletion,
) -> Result<(), Failure> {
    let deadline = Deadline::after(LIMIT);
    let wanted = MESSAGES.saturating_mul(2);
    let mut is_gone = false;
    while !is_gone || handlers.begun.load(ordering::Acquire) < wanted {
        loopback.task().proceed("completions")?;
        if deadline.left() == Msecs::new(0) {
            return Err(Failure::new("completions", fmt!("timed out")));
        }
        queue.poll(1);
        is_gone |= gone.wait_timeout(Msecs::new(0));
    }
    Ok(())
}

fn observed(
    loopback: &Loopback<'_>,
    direction: Direction,
    handlers: &Arc<Handlers>,
) -> Result<Operation<ObservedMessage>, Failure> {
    let observed = ObservedMessage {
        message: loopback.message(direction)?.into_inner(),
        handlers: handlers.clone(),
    };
    Operation::new(observed).step("operation")
}
