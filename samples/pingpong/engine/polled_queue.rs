// SPDX-License-Identifier: GPL-2.0

//! A completion queue that the task polls.

use super::STEP;
use crate::common::{
    step_error::{
        Step,
        StepError, //
    },
    task::{
        self,
        SampleTask, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    rdma::{
        cq::{
            CompletionQueue,
            DirectQueue,
            NotifiedQueue,
            NotifyMode, //
        },
        device::DeviceRef, //
    },
    sync::Msecs,
};

/// Maximum number of completions that a poll handles before it returns.
const BUDGET: u32 = 16;

/// A completion queue, by the way in which the task polls it.
pub(crate) enum PolledQueue {
    /// In a busy loop.
    Busy(DirectQueue),
    /// When a completion event wakes the task.
    Woken(NotifiedQueue),
}

impl PolledQueue {
    /// Creates a completion queue with `entries` entries. With `events`, the task sleeps until a
    /// completion event.
    pub(crate) fn new(
        task: &SampleTask,
        device: &DeviceRef,
        entries: u32,
        events: bool,
    ) -> Result<Self> {
        let device = device.clone();
        Ok(if events {
            let wake = task.wake().clone();
            Self::Woken(NotifiedQueue::new(device, entries, 0, wake, task::NAME)?)
        } else {
            Self::Busy(DirectQueue::new(device, entries, 0, task::NAME)?)
        })
    }

    /// Returns the completion queue.
    pub(crate) fn completion_queue(&self) -> &Arc<CompletionQueue> {
        match self {
            Self::Busy(queue) => queue.completion_queue(),
            Self::Woken(queue) => queue.completion_queue(),
        }
    }

    /// Handles completions until `ready` returns a value. Returns `None` after `limit`. Sleeps.
    pub(super) fn wait_for<R>(
        &mut self,
        task: &SampleTask,
        limit: Msecs,
        mut ready: impl FnMut() -> Option<R>,
    ) -> Result<Option<R>, StepError> {
        let answer = match self {
            Self::Busy(queue) => task.poll_for(STEP, limit, || {
                queue.poll(BUDGET);
                ready().map(Ok)
            }),
            Self::Woken(queue) => task.wait_for(STEP, limit, || loop {
                while queue.poll(BUDGET) == BUDGET {}
                match queue.arm(NotifyMode::Next) {
                    // Completions since the poll do not wake the task.
                    Ok(true) => {}
                    Ok(false) => break ready().map(Ok),
                    Err(error) => break Some(Err(error)),
                }
            }),
        };
        match answer {
            Ok(answer) => answer.step(STEP).map(Some),
            Err(stopped) if task.is_stopped() => Err(stopped),
            Err(_) => Ok(None),
        }
    }
}
