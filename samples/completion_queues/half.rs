// SPDX-License-Identifier: GPL-2.0

//! An operation of which the device took the beginning only is completed by the drain,
//! in the context that handlers of its queue have: they may sleep where a workqueue
//! polls it.

use crate::{
    common::failure::{
        Failure,
        Step, //
    },
    Bench,
    Desk,
    Note,
    CAPACITY,
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
        Capacity,
        Parts,
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
struct Half {
    note: Note,
    back: Arc<Atomic<u32>>,
}

impl Complete<Desk> for Half {
    /// Called where one may sleep, and sleeps.
    fn complete(half: Operation<Self>, _: &QueuePair<Desk>, _: &Completion<'_>) {
        fsleep(Delta::from_millis(1));
        half.back.fetch_add(1, ordering::Release);
    }
}

/// Posts such an operation, and drains the queue pair, after which it must be back.
pub(crate) fn run(bench: &Bench<'_>) -> Result<(), Failure> {
    let capacity = Capacity {
        sends: 2,
        ..CAPACITY
    };
    let entries = capacity.completions();
    let cq = CompletionQueue::private(bench.device(), entries, 0, Poll::Workqueue, OWNER)
        .step("completion queue")?;
    let init = bench.begin(Parts::new(bench.place.pd.clone(), cq, capacity))?;
    let number = init.number();
    let ready = bench.finish(init, number)?;
    let queue = ready.queue_pair();
    let back = Arc::new(Atomic::new(0), GFP_KERNEL).step("counter")?;
    let half = Half {
        note: bench.note(Direction::ToDevice)?.into_inner(),
        back: back.clone(),
    };
    let half = Operation::new(half).step("operation")?;
    let posted = queue.post_send(half, |half, chain| {
        chain.send([half.note.buffer.sge()])?;
        chain.send((1..MAX_SGE).map(|_| half.note.buffer.sge()))
    });
    posted.map_err(|unposted| unposted.error).step("half")?;
    queue.drain();
    match back.load(ordering::Acquire) {
        1 => Ok(()),
        back => Err(Failure::new(
            "half",
            fmt!("{back} times back, and not once"),
        )),
    }
}
