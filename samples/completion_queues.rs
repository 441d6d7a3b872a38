// SPDX-License-Identifier: GPL-2.0

//! The kinds of completion queues: their pollers, and the contexts of their completion handlers.
//!
//! The sample needs no peer. For each kind, it connects a queue pair with itself and exchanges
//! messages on it. Then it drains the queue pair with a receive still posted, which must complete
//! as flushed.

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
    sync::Arc, //
};
use loopback::{
    nothing_left,
    Loopback,
    MessagePair,
    CAPACITY,
    LIMIT, //
};
use rrdma::{
    errno::EOPNOTSUPP,
    rdma::cq::{
        CompletionQueue,
        DirectQueue,
        NotifiedQueue,
        NotifyMode,
        Poll, //
    },
    sync::{
        Deadline,
        Msecs,
        TimedCompletion, //
    },
};

#[path = "common/common.rs"]
mod common;
#[path = "loopback/loopback.rs"]
mod loopback;

module! {
    type: task::Handle,
    name: "rrdma_completion_queues",
    authors: ["The rnvmf developers"],
    description: "Sample: the kinds of completion queues and their pollers",
    license: "GPL",
}

rrdma::parameters! {
    device: Text<63> = "", "RDMA device name; empty: first device with an active port";
    gid_index: Number<0, 255> = 0, "GID index of port 1; default 0";
    messages: Number<1, 1000000> = 100, "number of messages for each kind of queue; default 100";
}

const OWNER: &CStr = c"rrdma_completion_queues";

/// Maximum number of completions that a poll handles.
const BUDGET: u32 = 16;

fn run(task: &Arc<SampleTask>) -> Result<Summary, Failure> {
    let device = task.device(&parameters::device.get())?;
    let gid_index = parameters::gid_index.get();
    let sample = Sample(Loopback::new(task, &device, gid_index, OWNER)?);
    for poll in [Poll::SoftIrq, Poll::Workqueue, Poll::UnboundWorkqueue] {
        sample.by_core(poll)?;
    }
    sample.pooled()?;
    sample.direct()?;
    sample.notified()?;
    sample.solicited()?;
    sample.moderation()?;
    let messages = parameters::messages.get();
    Ok(Summary::new(fmt!("6 kinds, {messages} messages each")))
}

struct Sample<'a>(Loopback<'a>);

impl Sample<'_> {
    /// The core polls a private queue.
    fn by_core(&self, poll: Poll) -> Result<(), Failure> {
        let cq = CompletionQueue::alloc(self.0.device(), CAPACITY.completions(), 0, poll, OWNER)
            .step("completion queue")?;
        self.exchange_messages(cq, |returned| self.wait_for_core(returned))?;
        pr_info!("polled by the core, {poll:?}\n");
        Ok(())
    }

    /// The core polls a queue that is shared with other users.
    fn pooled(&self) -> Result<(), Failure> {
        let cq =
            CompletionQueue::pool_get(self.0.device(), CAPACITY.completions(), 0, Poll::SoftIrq)
                .step("pooled completion queue")?;
        self.exchange_messages(cq, |returned| self.wait_for_core(returned))?;
        pr_info!("polled by the core, shared\n");
        Ok(())
    }

    /// Waits until `returned` is true. Completion handlers wake the task.
    fn wait_for_core(&self, returned: &dyn Fn() -> bool) -> Result<(), Failure> {
        let ready = || returned().then_some(());
        self.0.task().wait_for("completions", LIMIT, ready)
    }

    /// The task polls in a busy loop.
    fn direct(&self) -> Result<(), Failure> {
        let queue = DirectQueue::new(self.0.device(), CAPACITY.completions(), 0, OWNER)
            .step("direct queue")?;
        let cq = queue.completion_queue().clone();
        self.exchange_messages(cq, |returned| {
            let deadline = Deadline::after(LIMIT);
            while !returned() {
                self.0.task().proceed("completions")?;
                if deadline.left() == Msecs::new(0) {
                    return Err(Failure::new("completions", fmt!("timed out")));
                }
                if queue.poll(1) > 1 {
                    return Err(Failure::new(
                        "poll",
                        fmt!("more completions than requested"),
                    ));
                }
            }
            Ok(())
        })?;
        nothing_left("direct queue", queue.poll(BUDGET))?;
        pr_info!("polled by the consumer\n");
        Ok(())
    }

    /// The task polls when it is woken.
    fn notified(&self) -> Result<(), Failure> {
        let task = self.0.task();
        let (wake, entries) = (task.wake().clone(), CAPACITY.completions());
        let mut queue =
            NotifiedQueue::new(self.0.device(), entries, 0, wake, OWNER).step("notified queue")?;
        let cq = queue.completion_queue().clone();
        self.exchange_messages(cq, |returned| {
            task.wait_for("completions", LIMIT, || {
                loop {
                    while queue.poll(BUDGET) == BUDGET {}
                    if returned() {
                        return Some(Ok(()));
                    }
                    match queue.arm(NotifyMode::Next) {
                        // Completions since the poll do not wake the task.
                        Ok(true) => {}
                        Ok(false) => return None,
                        Err(error) => return Some(Err(error)),
                    }
                }
            })?
            .step("arm")
        })?;
        nothing_left("notified queue", queue.poll(BUDGET))?;
        pr_info!("polled by the consumer, when notified\n");
        Ok(())
    }

    /// The task is woken for solicited completions only.
    fn solicited(&self) -> Result<(), Failure> {
        let bell = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL).step("completion")?;
        let entries = CAPACITY.completions();
        let mut queue = NotifiedQueue::new(self.0.device(), entries, 0, bell.clone(), OWNER)
            .step("notified queue")?;
        let ready = self
            .0
            .connected(queue.completion_queue().clone(), CAPACITY)?;
        let pair = ready.queue_pair();
        let mut messages = self.0.message_pair()?;
        if queue.arm(NotifyMode::Solicited).step("arm")? {
            return Err(Failure::new("arm", fmt!("the queue is not empty")));
        }
        for solicited in [false, true] {
            pair.post_receive(messages.receive).step("receive")?;
            let posted = pair.post_send(messages.send, |message, chain| {
                if solicited {
                    chain.solicited();
                }
                chain.send([message.buffer.sge()])
            });
            posted.step("send")?;
            let deadline = Deadline::after(LIMIT);
            while !MessagePair::is_back(pair) {
                self.0.task().proceed("completions")?;
                if deadline.left() == Msecs::new(0) {
                    return Err(Failure::new("completions", fmt!("timed out")));
                }
                queue.poll(BUDGET);
            }
            let limit = if solicited { LIMIT } else { Msecs::new(0) };
            if bell.wait_timeout(limit) != solicited {
                return Err(Failure::new(
                    "wakeup",
                    fmt!("wrong with solicited={solicited}"),
                ));
            }
            messages = MessagePair::take(pair)?;
        }
        pr_info!("notified of solicited completions only\n");
        Ok(())
    }

    /// The device interrupts for several completions at once, if it supports that.
    fn moderation(&self) -> Result<(), Failure> {
        let queue = DirectQueue::new(self.0.device(), 1, 0, OWNER).step("direct queue")?;
        match queue.completion_queue().set_moderation(8, 100) {
            Ok(()) => pr_info!("moderation: 8 completions or 100 us per interrupt\n"),
            Err(error) if error == EOPNOTSUPP => {
                pr_info!("moderation: not supported by the device\n")
            }
            Err(error) => return Err(error).step("moderation"),
        }
        Ok(())
    }

    /// Sends messages, one after the other, on a queue pair with `cq`. `wait` must return when the
    /// closure that it gets returns true.
    fn exchange_messages(
        &self,
        cq: Arc<CompletionQueue>,
        mut wait: impl FnMut(&dyn Fn() -> bool) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let ready = self.0.connected(cq, CAPACITY)?;
        let queue = ready.queue_pair();
        let mut messages = self.0.message_pair()?;
        for number in 0..u64::from(parameters::messages.get()) {
            let text = number.to_ne_bytes();
            for (to, from) in messages.send.buffer.write().iter_mut().zip(text) {
                *to = from;
            }
            messages.post(queue)?;
            wait(&|| MessagePair::is_back(queue))?;
            messages = MessagePair::take(queue)?;
            let is = messages.receive.buffer.read();
            if is != text {
                return Err(Failure::new(
                    "message",
                    fmt!("got {is:?}, expected {text:?}"),
                ));
            }
            messages.receive.buffer.give_back();
        }
        // If no one else polls the completion queue, the drain does.
        queue.post_receive(messages.receive).step("receive")?;
        queue.drain();
        let completed = queue.context().completed.lock();
        let flushed = completed.failed.is_some_and(|failure| failure.is_flush());
        if completed.received.is_none() || !flushed {
            return Err(Failure::new("drain", fmt!("the receive was not flushed")));
        }
        Ok(())
    }
}
