// SPDX-License-Identifier: GPL-2.0

//! Tests that the drain completes an operation that was posted in part.
//!
//! It does so in the context of the completion handlers of the queue pair. With a workqueue as the
//! poller, they may sleep.

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

/// Two messages. The second has more scatter/gather entries than the queue pair supports.
struct PartialPost {
    message: Message,
    back: Arc<Atomic<u32>>,
}

impl Complete<CompletionSink> for PartialPost {
    /// May sleep in this context, and does.
    fn complete(partial_post: Operation<Self>, _: &QueuePair<CompletionSink>, _: &Completion<'_>) {
        fsleep(Delta::from_millis(1));
        partial_post.back.fetch_add(1, ordering::Release);
    }
}

/// Posts such an operation and drains the queue pair. The operation must then have completed.
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
            fmt!("completed {back} times, expected 1"),
        )),
    }
}
