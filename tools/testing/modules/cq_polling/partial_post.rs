// SPDX-License-Identifier: GPL-2.0

//! An operation of which the device took the beginning only is completed by the drain,
//! in the context that handlers of its queue have: they may sleep where a workqueue
//! polls it.

use crate::{
    common::failure::{
        Failure,
        Step, //
    },
    loopback::{
        CompletionSink,
        Loopback,
        Message,
        CAPACITY, //
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
    time::{
        delay::fsleep,
        Delta, //
    },
};
use rrdma::rdma::{
    cq::{
        Completion,
        CompletionQueue,
        Poll, //
    },
    dma::Direction,
    qp::{
        QpCap,
        QueuePair, //
    },
    wr::{
        Complete,
        Operation,
        MAX_SGE, //
    },
};

/// Two messages, of which the second is in more pieces than the queue pair has room
/// for.
struct PartialPost {
    message: Message,
    back: Arc<Atomic<u32>>,
}

impl Complete<CompletionSink> for PartialPost {
    /// Called where one may sleep, and sleeps.
    fn complete(partial_post: Operation<Self>, _: &QueuePair<CompletionSink>, _: &Completion<'_>) {
        fsleep(Delta::from_millis(1));
        partial_post.back.fetch_add(1, ordering::Release);
    }
}

/// Posts such an operation, and drains the queue pair, after which it must be back.
pub(crate) fn run(loopback: &Loopback<'_>) -> Result<(), Failure> {
    let capacity = QpCap {
        sends: 2,
        ..CAPACITY
    };
    let entries = capacity.completions();
    let cq = CompletionQueue::alloc(loopback.device(), entries, 0, Poll::Workqueue, OWNER)
        .step("completion queue")?;
    let ready = loopback.connected(cq, capacity)?;
    let queue = ready.queue_pair();
    let back = Arc::new(Atomic::new(0), GFP_KERNEL).step("counter")?;
    let partial_post = PartialPost {
        message: loopback.message(Direction::ToDevice)?.into_inner(),
        back: back.clone(),
    };
    let partial_post = Operation::new(partial_post).step("operation")?;
    let posted = queue.post_send(partial_post, |partial_post, chain| {
        chain.send([partial_post.message.buffer.sge()])?;
        chain.send((1..MAX_SGE).map(|_| partial_post.message.buffer.sge()))
    });
    posted.step("partial post")?;
    queue.drain();
    match back.load(ordering::Acquire) {
        1 => Ok(()),
        back => Err(Failure::new(
            "partial post",
            fmt!("{back} times back, and not once"),
        )),
    }
}
