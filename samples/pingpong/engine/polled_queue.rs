// SPDX-License-Identifier: GPL-2.0

//! A completion queue with a choice of pollers.

use super::STEP;
use crate::common::{
    failure::{
        Failure,
        Step, //
    },
    task::SampleTask, //
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};
use rrdma::{
    cpu,
    rdma::{
        cq::{
            CompletionQueue,
            DirectQueue,
            NotifiedQueue,
            NotifyMode,
            Poll, //
        },
        device::DeviceRef, //
    },
    sync::{
        Deadline,
        Msecs, //
    },
};

/// Maximum number of completions that a poll handles before it returns.
const BUDGET: u32 = 16;

/// The poller of a completion queue.
#[derive(Clone, Copy)]
pub(crate) enum Poller {
    /// The core, in softirq.
    Core,
    /// The task, in a busy loop.
    Task,
    /// The task, when a completion event wakes it.
    WokenTask,
}

/// A completion queue, by its poller.
pub(crate) enum PolledQueue {
    Core(Arc<CompletionQueue>),
    Task(DirectQueue),
    WokenTask(NotifiedQueue),
}

impl PolledQueue {
    /// Creates a completion queue with `entries` entries.
    pub(crate) fn new(
        task: &SampleTask,
        device: &DeviceRef,
        entries: u32,
        poller: Poller,
        owner: &'static CStr,
    ) -> Result<Self> {
        let device = device.clone();
        Ok(match poller {
            Poller::Core => {
                let poll = Poll::SoftIrq;
                Self::Core(CompletionQueue::alloc(device, entries, 0, poll, owner)?)
            }
            Poller::Task => Self::Task(DirectQueue::new(device, entries, 0, owner)?),
            Poller::WokenTask => {
                let wake = task.wake().clone();
                Self::WokenTask(NotifiedQueue::new(device, entries, 0, wake, owner)?)
            }
        })
    }

    /// Returns the completion queue.
    pub(crate) fn completion_queue(&self) -> &Arc<CompletionQueue> {
        match self {
            Self::Core(queue) => queue,
            Self::Task(queue) => queue.completion_queue(),
            Self::WokenTask(queue) => queue.completion_queue(),
        }
    }

    /// Polls, if the task is the poller. A queue that wakes the task is armed afterwards, with no
    /// completion left in it.
    fn handle(&mut self) -> Result {
        match self {
            Self::Core(_) => {}
            Self::Task(queue) => {
                queue.poll(BUDGET);
            }
            Self::WokenTask(queue) => loop {
                while queue.poll(BUDGET) == BUDGET {}
                if !queue.arm(NotifyMode::Next)? {
                    break;
                }
            },
        }
        Ok(())
    }

    /// Handles completions until `ready` returns a value. Returns `None` after `limit`.
    pub(super) fn wait_for<R>(
        &mut self,
        task: &SampleTask,
        limit: Msecs,
        mut ready: impl FnMut() -> Option<R>,
    ) -> Result<Option<R>, Failure> {
        if !matches!(self, Self::Task(_)) {
            let answer = task.wait_for(STEP, limit, || match self.handle() {
                Ok(()) => ready().map(Ok),
                Err(error) => Some(Err(error)),
            });
            return match answer {
                Ok(answer) => answer.step(STEP).map(Some),
                Err(stopped) if task.is_stopped() => Err(stopped),
                Err(_) => Ok(None),
            };
        }
        let deadline = Deadline::after(limit);
        loop {
            task.proceed(STEP)?;
            self.handle().step(STEP)?;
            if let Some(answer) = ready() {
                return Ok(Some(answer));
            }
            if deadline.left() == Msecs::new(0) {
                return Ok(None);
            }
            cpu::cond_resched();
        }
    }
}
