// SPDX-License-Identifier: GPL-2.0

//! The kinds of completion queues: their pollers, and the contexts of their completion handlers.
//!
//! The sample needs no peer. For each kind, it connects a queue pair with itself and exchanges
//! messages on it. Then it drains the queue pair with a receive still posted, which must complete
//! as flushed.

use common::{
    port_gid::PortGid,
    step_error::{
        expect_equal,
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
    sync::Arc, //
};
use pair::{
    nothing_left,
    ConnectedQp,
    Work,
    LIMIT,
    ONE_MESSAGE, //
};
use rrdma::{
    errno::EOPNOTSUPP,
    rdma::{
        cq::{
            CompletionQueue,
            DirectQueue,
            NotifiedQueue,
            NotifyMode,
            Poll, //
        },
        device::DeviceRef,
        dma::Direction,
        wr::Operation, //
    },
    sync::{
        Msecs,
        TimedCompletion, //
    },
};

#[path = "common/common.rs"]
mod common;
#[path = "pair/pair.rs"]
#[allow(dead_code)]
mod pair;

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

/// Maximum number of completions that a poll handles.
const BUDGET: u32 = 16;

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let device = task.device(&parameters::device.get())?;
    let gid_index = parameters::gid_index.get();
    let sample = Sample(PortGid::new(task, &device, gid_index)?);
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

/// A message and the receive for it.
struct MessagePair {
    send: Operation<Work>,
    receive: Operation<Work>,
}

impl MessagePair {
    /// Returns whether both have completed on `end`.
    fn is_back(end: &ConnectedQp) -> bool {
        end.returned() == 2
    }

    /// Takes both from `end` when they have completed, in any order.
    fn take(end: &ConnectedQp) -> Result<Self, StepError> {
        let (one, other) = (end.done("message")?, end.done("message")?);
        let (send, receive) = match one.1.received {
            None => (one.0, other.0),
            Some(_) => (other.0, one.0),
        };
        Ok(Self { send, receive })
    }
}

struct Sample<'a>(PortGid<'a>);

impl Sample<'_> {
    /// Allocates a message with a `u64`, and the receive for it.
    fn message_pair(&self) -> Result<MessagePair, StepError> {
        let work = |direction| Work::new(self.0.device(), size_of::<u64>(), direction);
        Ok(MessagePair {
            send: work(Direction::ToDevice)?,
            receive: work(Direction::FromDevice)?,
        })
    }

    /// Returns a reference to the device.
    fn device(&self) -> DeviceRef {
        self.0.device().clone()
    }

    /// The core polls a private queue.
    fn by_core(&self, poll: Poll) -> Result<(), StepError> {
        let entries = ONE_MESSAGE.completions();
        let cq = CompletionQueue::alloc(self.device(), entries, 0, poll, task::NAME)
            .step("completion queue")?;
        self.exchange_messages(cq, |returned| self.wait_for_core(returned))?;
        pr_info!("polled by the core, {poll:?}\n");
        Ok(())
    }

    /// The core polls a queue that is shared with other users.
    fn pooled(&self) -> Result<(), StepError> {
        let entries = ONE_MESSAGE.completions();
        let cq = CompletionQueue::pool_get(self.device(), entries, 0, Poll::SoftIrq)
            .step("pooled completion queue")?;
        self.exchange_messages(cq, |returned| self.wait_for_core(returned))?;
        pr_info!("polled by the core, shared\n");
        Ok(())
    }

    /// Waits until `returned` is true. Completion handlers wake the task.
    fn wait_for_core(&self, returned: &dyn Fn() -> bool) -> Result<(), StepError> {
        let ready = || returned().then_some(());
        self.0.task.wait_for("completions", LIMIT, ready)
    }

    /// The task polls in a busy loop.
    fn direct(&self) -> Result<(), StepError> {
        let entries = ONE_MESSAGE.completions();
        let queue = DirectQueue::new(self.device(), entries, 0, task::NAME).step("direct queue")?;
        let cq = queue.completion_queue().clone();
        self.exchange_messages(cq, |returned| {
            let poll = || match queue.poll(1) {
                0 | 1 => returned().then_some(Ok(())),
                more => Some(Err(StepError::new(
                    "poll",
                    fmt!("{more} completions, 1 requested"),
                ))),
            };
            self.0.task.poll_for("completions", LIMIT, poll)?
        })?;
        nothing_left("direct queue", queue.poll(BUDGET))?;
        pr_info!("polled by the consumer\n");
        Ok(())
    }

    /// The task polls when it is woken.
    fn notified(&self) -> Result<(), StepError> {
        let task = self.0.task;
        let (wake, entries) = (task.wake().clone(), ONE_MESSAGE.completions());
        let mut queue = NotifiedQueue::new(self.device(), entries, 0, wake, task::NAME)
            .step("notified queue")?;
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
    fn solicited(&self) -> Result<(), StepError> {
        let bell = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL).step("completion")?;
        let entries = ONE_MESSAGE.completions();
        let mut queue = NotifiedQueue::new(self.device(), entries, 0, bell.clone(), task::NAME)
            .step("notified queue")?;
        let cq = queue.completion_queue().clone();
        let end = ConnectedQp::loopback(&self.0, cq, ONE_MESSAGE)?;
        let mut messages = self.message_pair()?;
        if queue.arm(NotifyMode::Solicited).step("arm")? {
            return Err(StepError::new("arm", fmt!("the queue is not empty")));
        }
        for solicited in [false, true] {
            end.post_receive(messages.receive)?;
            end.post("send", messages.send, |message, chain| {
                if solicited {
                    chain.solicited();
                }
                chain.send([message.buffer.sge()])
            })?;
            self.0.task.poll_for("completions", LIMIT, || {
                queue.poll(BUDGET);
                MessagePair::is_back(&end).then_some(())
            })?;
            let limit = if solicited { LIMIT } else { Msecs::ZERO };
            if bell.wait_timeout(limit) != solicited {
                return Err(StepError::new(
                    "wakeup",
                    fmt!("wrong with solicited={solicited}"),
                ));
            }
            messages = MessagePair::take(&end)?;
        }
        pr_info!("notified of solicited completions only\n");
        Ok(())
    }

    /// The device interrupts for several completions at once, if it supports that.
    fn moderation(&self) -> Result<(), StepError> {
        let queue = DirectQueue::new(self.device(), 1, 0, task::NAME).step("direct queue")?;
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
        mut wait: impl FnMut(&dyn Fn() -> bool) -> Result<(), StepError>,
    ) -> Result<(), StepError> {
        let end = ConnectedQp::loopback(&self.0, cq, ONE_MESSAGE)?;
        let mut messages = self.message_pair()?;
        for number in 0..u64::from(parameters::messages.get()) {
            let text = number.to_ne_bytes();
            for (to, from) in messages.send.buffer.write().iter_mut().zip(text) {
                *to = from;
            }
            end.post_receive(messages.receive)?;
            end.post("send", messages.send, |message, chain| {
                chain.send([message.buffer.sge()])
            })?;
            wait(&|| MessagePair::is_back(&end))?;
            messages = MessagePair::take(&end)?;
            expect_equal("message", messages.receive.buffer.read(), &text)?;
            messages.receive.buffer.give_back();
        }
        // If no one else polls the completion queue, the drain does.
        end.post_receive(messages.receive)?;
        end.queue().drain();
        match end.try_take().map(|back| back.result) {
            Some(Err(failure)) if failure.is_flush() => Ok(()),
            _ => Err(StepError::new("drain", fmt!("the receive was not flushed"))),
        }
    }
}
