// SPDX-License-Identifier: GPL-2.0

//! Tests the pollers of completion queues, and the contexts of completion handlers.
//!
//! - [`one_poller`]: a queue that its owner polls has one poller at a time.
//! - [`partial_post`]: an operation that was posted in part.
//! - [`too_small`]: a completion queue with too few entries.

use common::{
    port_gid::PortGid,
    step_error::{
        expect_equal,
        expect_error,
        Step,
        StepError, //
    },
    task::{
        self,
        SampleTask,
        Summary, //
    },
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
use pair::{
    nothing_left,
    CompletionSink,
    ConnectedQp,
    Work,
    LIMIT,
    ONE_MESSAGE, //
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
        dma::{
            Direction,
            DmaBuffer, //
        },
        qp::{
            QpInitAttr,
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
        Msecs,
        OwnedQueue,
        TimedCompletion,
        WorkKind, //
    },
};

#[path = "../../../samples/common/common.rs"]
mod common;
#[path = "cq_polling/one_poller.rs"]
mod one_poller;
#[path = "../../../samples/pair/pair.rs"]
#[allow(dead_code)]
mod pair;
#[path = "cq_polling/partial_post.rs"]
mod partial_post;
#[path = "cq_polling/too_small.rs"]
mod too_small;

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
    part: Text<15> = "", "what to test, too_small; empty: the pollers";
}

/// Maximum number of completions that a poll handles.
const BUDGET: u32 = 16;

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let device = task.device(&parameters::device.get())?;
    let gid_index = parameters::gid_index.get();
    let port_gid = PortGid::new(task, &device, gid_index)?;
    match &*parameters::part.get() {
        "too_small" => too_small::run(&port_gid)?,
        _ => {
            partial_post::run(&port_gid)?;
            polled_as_they_go(&port_gid)?;
            one_poller::run(&port_gid)?;
            receives_apart(&port_gid)?;
            refusals(&port_gid)?;
        }
    }
    Ok(Summary::new(fmt!("one handler at a time")))
}

/// A message, in either direction, with its completion handler.
///
/// The handler may sleep: its callers are a poll by the owner, a workqueue and a drain.
struct Handled<F> {
    buffer: DmaBuffer,
    handler: F,
}

impl<F: Fn() + Send + 'static> Handled<F> {
    /// Allocates a message with room for a `u64`. May sleep.
    fn new(
        port_gid: &PortGid<'_>,
        direction: Direction,
        handler: F,
    ) -> Result<Operation<Self>, StepError> {
        let device = port_gid.device().clone();
        let buffer = DmaBuffer::new(device, size_of::<u64>(), direction).step("buffer")?;
        Operation::new(Self { buffer, handler }).step("operation")
    }
}

impl<F: Fn() + Send + 'static> Complete<CompletionSink> for Handled<F> {
    fn complete(message: Operation<Self>, _: &QueuePair<CompletionSink>, _: &Completion<'_>) {
        (message.handler)();
    }
}

impl<F: Fn() + Send + 'static> Receive<CompletionSink> for Handled<F> {
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

/// Polls a queue while its queue pairs are destroyed; their drain polls it, too. The posted
/// receives must complete, and nothing more.
fn polled_as_they_go(port_gid: &PortGid<'_>) -> Result<(), StepError> {
    const QUEUE_PAIRS: u32 = 5;
    let (device, entries) = (port_gid.device().clone(), ONE_MESSAGE.completions());
    let queue = DirectQueue::new(device, entries, 0, task::NAME).step("direct queue")?;
    let others = OwnedQueue::new(task::NAME, WorkKind::Ordinary, 1).step("workqueue")?;
    let back = Arc::new(Atomic::new(0), GFP_KERNEL).step("counter")?;
    for _ in 0..QUEUE_PAIRS {
        port_gid.task.proceed("queue pairs")?;
        let cq = queue.completion_queue().clone();
        let end = ConnectedQp::loopback(port_gid, cq, ONE_MESSAGE)?;
        let counter = back.clone();
        // A receive for a message that never arrives.
        let receive = Handled::new(port_gid, Direction::FromDevice, move || {
            counter.fetch_add(1, ordering::Release);
        })?;
        end.queue().post_receive(receive).step("receive")?;
        let gone = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL).step("completion")?;
        let told = gone.clone();
        let drop_it = move || {
            drop(end);
            told.complete();
        };
        others.try_spawn(GFP_KERNEL, drop_it).step("work item")?;
        while !gone.wait_timeout(Msecs::ZERO) {
            queue.poll(BUDGET);
        }
        nothing_left("destroy", queue.poll(BUDGET))?;
    }
    expect_equal(
        "completed receives",
        back.load(ordering::Acquire),
        QUEUE_PAIRS,
    )
}

/// The receives of a queue pair with two completion queues complete in the second one.
fn receives_apart(port_gid: &PortGid<'_>) -> Result<(), StepError> {
    let (task, device) = (port_gid.task, || port_gid.device().clone());
    let entries = ONE_MESSAGE.completions();
    let sends = CompletionQueue::alloc(device(), entries, 0, Poll::SoftIrq, task::NAME)
        .step("completion queue")?;
    let receives = DirectQueue::new(device(), entries, 0, task::NAME).step("direct queue")?;
    let parts = QpInitAttr::new(port_gid.pd.clone(), sends, ONE_MESSAGE)
        .with_receive_cq(receives.completion_queue().clone());
    let end = ConnectedQp::loopback_with(port_gid, parts)?;
    let message = |direction| Work::new(port_gid.device(), size_of::<u64>(), direction);
    end.post_receive(message(Direction::FromDevice)?)?;
    end.post("message", message(Direction::ToDevice)?, |work, chain| {
        chain.send([work.buffer.sge()])
    })?;
    let sent = end.done("message")?.1;
    expect_equal("receives among the sends", sent.received.is_some(), false)?;
    let polled = task.poll_for("receive", LIMIT, || {
        Some(receives.poll(BUDGET)).filter(|handled| *handled != 0)
    })?;
    expect_equal("polled receives", polled, 1)
}

/// Checks that queues with invalid sizes are refused.
fn refusals(port_gid: &PortGid<'_>) -> Result<(), StepError> {
    let device = || port_gid.device().clone();
    let most = device().attributes().max_cqe;
    let poll = Poll::SoftIrq;
    for entries in [0, most.saturating_add(1)] {
        let wake = port_gid.task.wake().clone();
        refused(CompletionQueue::alloc(
            device(),
            entries,
            0,
            poll,
            task::NAME,
        ))?;
        refused(CompletionQueue::pool_get(device(), entries, 0, poll))?;
        refused(DirectQueue::new(device(), entries, 0, task::NAME))?;
        refused(NotifiedQueue::new(device(), entries, 0, wake, task::NAME))?;
    }
    Ok(())
}

/// Checks that creating a queue failed with `EINVAL`.
fn refused<T>(result: Result<T>) -> Result<(), StepError> {
    expect_error("refusals", result, EINVAL)
}
