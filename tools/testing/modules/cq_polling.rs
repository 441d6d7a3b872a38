// SPDX-License-Identifier: GPL-2.0

//! Tests the pollers of completion queues, and the contexts of completion handlers.
//!
//! - [`one_poller`]: a queue that its owner polls has one poller at a time.
//! - [`overrun`]: a completion queue with too few entries.
//! - [`partial_post`]: an operation that was posted in part.

use common::{
    failure::{
        Failure,
        Step, //
    },
    task::{
        self,
        SampleTask,
        Summary, //
    },
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    },
};
use loopback::{
    nothing_left,
    CompletionSink,
    Loopback,
    Message,
    CAPACITY, //
};
use rrdma::{
    rdma::{
        cq::{
            Completion,
            CompletionQueue,
            DirectQueue,
            NotifiedQueue,
            Poll, //
        },
        dma::Direction,
        qp::QueuePair,
        wr::{
            Complete,
            Operation,
            Receive,
            Sge, //
        },
    },
    sync::{
        Msecs,
        OwnedQueue,
        QueueFlags,
        TimedCompletion, //
    },
};

#[path = "../../../samples/common/common.rs"]
mod common;
#[path = "../../../samples/loopback/loopback.rs"]
#[allow(dead_code)]
mod loopback;
#[path = "cq_polling/one_poller.rs"]
mod one_poller;
#[path = "cq_polling/overrun.rs"]
mod overrun;
#[path = "cq_polling/partial_post.rs"]
mod partial_post;

module! {
    type: task::Handle,
    name: "rrdma_test_cq_polling",
    authors: ["The rnvmf developers"],
    description: "Test: pollers of completion queues, and contexts of completion handlers",
    license: "GPL",
}

rrdma::parameters! {
    device: Text<63> = "", "RDMA device name; empty: first device with an active port";
    gid_index: Number<0, 255> = 0, "GID index of port 1; default 0";
    overrun: Bool = false, "at the end, overrun a completion queue with too few entries";
}

const OWNER: &CStr = c"rrdma_test_cq_polling";

/// Maximum number of completions that a poll handles.
const BUDGET: u32 = 16;

fn run(task: &Arc<SampleTask>) -> Result<Summary, Failure> {
    let device = task.device(&parameters::device.get())?;
    let gid_index = parameters::gid_index.get();
    let loopback = Loopback::new(task, &device, gid_index, OWNER)?;
    partial_post::run(&loopback)?;
    polled_as_they_go(&loopback)?;
    one_poller::run(&loopback)?;
    refusals(&loopback)?;
    if parameters::overrun.get() {
        overrun::run(&loopback)?;
    }
    Ok(Summary::new(fmt!("one handler at a time")))
}

/// A receive for a message that never arrives.
struct CountedReceive {
    message: Message,
    back: Arc<Atomic<u32>>,
}

impl Complete<CompletionSink> for CountedReceive {
    /// May sleep here: its callers are a poll by the owner and a drain.
    fn complete(receive: Operation<Self>, _: &QueuePair<CompletionSink>, _: &Completion<'_>) {
        receive.back.fetch_add(1, ordering::Release);
    }
}

impl Receive<CompletionSink> for CountedReceive {
    fn buffer(&self) -> Sge<'_> {
        self.message.buffer()
    }
}

/// Polls a queue while its queue pairs are destroyed; their drain polls it, too. The posted
/// receives must complete, and nothing more.
fn polled_as_they_go(loopback: &Loopback<'_>) -> Result<(), Failure> {
    const QUEUE_PAIRS: u32 = 5;
    let queue = DirectQueue::new(loopback.device(), CAPACITY.completions(), 0, OWNER)
        .step("direct queue")?;
    let others = OwnedQueue::new(OWNER, QueueFlags::UNBOUND, 1).step("workqueue")?;
    let back = Arc::new(Atomic::new(0), GFP_KERNEL).step("counter")?;
    for _ in 0..QUEUE_PAIRS {
        loopback.task().proceed("queue pairs")?;
        let ready = loopback.connected(queue.completion_queue().clone(), CAPACITY)?;
        let receive = CountedReceive {
            message: loopback.message(Direction::FromDevice)?.into_inner(),
            back: back.clone(),
        };
        let receive = Operation::new(receive).step("operation")?;
        ready.queue_pair().post_receive(receive).step("receive")?;
        let gone = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL).step("completion")?;
        let told = gone.clone();
        let drop_it = move || {
            drop(ready);
            told.complete();
        };
        others.try_spawn(GFP_KERNEL, drop_it).step("work item")?;
        while !gone.wait_timeout(Msecs::new(0)) {
            queue.poll(BUDGET);
        }
        nothing_left("destroy", queue.poll(BUDGET))?;
    }
    match back.load(ordering::Acquire) {
        QUEUE_PAIRS => Ok(()),
        back => Err(Failure::new(
            "destroy",
            fmt!("{back} of {QUEUE_PAIRS} receives completed"),
        )),
    }
}

/// Checks that queues with invalid sizes are refused.
fn refusals(loopback: &Loopback<'_>) -> Result<(), Failure> {
    let device = || loopback.device();
    let most = device().attributes().max_cqe;
    let poll = Poll::SoftIrq;
    for entries in [0, most.saturating_add(1)] {
        let wake = loopback.task().wake().clone();
        refused(CompletionQueue::alloc(device(), entries, 0, poll, OWNER))?;
        refused(CompletionQueue::pool_get(device(), entries, 0, poll))?;
        refused(DirectQueue::new(device(), entries, 0, OWNER))?;
        refused(NotifiedQueue::new(device(), entries, 0, wake, OWNER))?;
    }
    Ok(())
}

/// Checks that creating a queue failed with `EINVAL`.
fn refused<T>(result: Result<T>) -> Result<(), Failure> {
    match result {
        Err(error) if error == EINVAL => Ok(()),
        Err(error) => Err(Failure::new(
            "refusals",
            fmt!("got {error:?}, expected EINVAL"),
        )),
        Ok(_) => Err(Failure::new("refusals", fmt!("created, although invalid"))),
    }
}
