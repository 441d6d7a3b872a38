// SPDX-License-Identifier: GPL-2.0

//! The objects that the messages are played on, up to a queue pair that receives.

use super::{
    engine::{
        QpCtx,
        RecvBuf, //
    },
    settings::Settings,
    Transport, //
};
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
use rrdma::rdma::{
    cq::{
        CompletionQueue,
        DirectQueue,
        NotifiedQueue,
        NotifyMode, //
    },
    device::{
        DeviceRef,
        Port, //
    },
    pd::ProtectionDomain,
    qp::{
        self,
        Init,
        QpCap,
        QpInitAttr, //
    },
};

/// What `rdma resource` names.
const OWNER: &CStr = c"rrdma_pingpong";

/// Completions that are handled before anything else is looked at.
const BUDGET: u32 = 16;

/// A queue pair with receives posted, and where its requests complete.
pub(super) struct QpSetup<T: Transport> {
    pub(super) pd: Arc<ProtectionDomain>,
    pub(super) init: Init<QpCtx<T>>,
    pub(super) queue: Queue,
}

impl<T: Transport> QpSetup<T> {
    /// Makes it all.
    pub(super) fn new(
        task: &Arc<SampleTask>,
        settings: &Settings,
        device: &DeviceRef,
        port: Port<'_>,
    ) -> Result<Self, Failure> {
        let pd = ProtectionDomain::new(device.clone(), OWNER).step("protection domain")?;
        let capacity = QpCap {
            sends: 1,
            receives: settings.rx_depth,
            send_sges: 1,
        };
        let queue =
            Queue::new(task, settings, device, capacity.completions()).step("completion queue")?;
        let ctx = QpCtx::new(task, settings, device)?;
        let parts = QpInitAttr::new(pd.clone(), queue.completion_queue().clone(), capacity);
        let reset = qp::create(parts, ctx, OWNER).step("queue pair")?;
        let init = T::initialise(reset, port).step("queue pair")?;
        for _ in 0..settings.rx_depth {
            let receive = RecvBuf::new::<T>(device, settings).step("receive")?;
            init.post_receive(receive).step("receive")?;
        }
        Ok(Self { pd, init, queue })
    }
}

/// A completion queue that the task polls, or sleeps for.
pub(super) enum Queue {
    Polled(DirectQueue),
    Events(NotifiedQueue),
}

impl Queue {
    fn new(
        task: &SampleTask,
        settings: &Settings,
        device: &DeviceRef,
        entries: u32,
    ) -> Result<Self> {
        let device = device.clone();
        Ok(if settings.events {
            let wake = task.wake().clone();
            Self::Events(NotifiedQueue::new(device, entries, 0, wake, OWNER)?)
        } else {
            Self::Polled(DirectQueue::new(device, entries, 0, OWNER)?)
        })
    }

    fn completion_queue(&self) -> &Arc<CompletionQueue> {
        match self {
            Self::Polled(queue) => queue.completion_queue(),
            Self::Events(queue) => queue.completion_queue(),
        }
    }

    /// Whether there is nothing to do but to poll.
    pub(super) fn is_polled(&self) -> bool {
        matches!(self, Self::Polled(_))
    }

    /// Handles what has completed; afterwards a queue with events wakes the task when
    /// there is more.
    pub(super) fn handle(&mut self) -> Result {
        match self {
            Self::Polled(queue) => {
                queue.poll(BUDGET);
            }
            Self::Events(queue) => loop {
                while queue.poll(BUDGET) == BUDGET {}
                if !queue.arm(NotifyMode::Next)? {
                    break;
                }
            },
        }
        Ok(())
    }
}
