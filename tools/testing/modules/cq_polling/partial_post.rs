// SPDX-License-Identifier: GPL-2.0

//! Tests that the drain completes an operation that was posted in part.
//!
//! It does so in the context of the completion handlers of the queue pair. With a workqueue as the
//! poller, they may sleep.

use crate::{
    common::{
        port_gid::PortGid,
        step_error::{
            expect_equal,
            Step,
            StepError, //
        },
        task, //
    },
    pair::{
        ConnectedQp,
        ONE_MESSAGE, //
    },
    Handled, //
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
        CompletionQueue,
        Poll, //
    },
    dma::Direction,
    qp::QpCap,
    wr::MAX_SGE, //
};

/// Posts two messages, the second with more scatter/gather entries than the queue pair supports.
/// Then drains the queue pair. The operation must then have completed.
pub(crate) fn run(port_gid: &PortGid<'_>) -> Result<(), StepError> {
    let capacity = QpCap {
        sends: 2,
        ..ONE_MESSAGE
    };
    let (device, entries) = (port_gid.device().clone(), capacity.completions());
    let cq = CompletionQueue::alloc(device, entries, 0, Poll::Workqueue, task::NAME)
        .step("completion queue")?;
    let end = ConnectedQp::loopback(port_gid, cq, capacity)?;
    let back = Arc::new(Atomic::new(0), GFP_KERNEL).step("counter")?;
    let counter = back.clone();
    let message = Handled::new(port_gid, Direction::ToDevice, move || {
        fsleep(Delta::from_millis(1));
        counter.fetch_add(1, ordering::Release);
    })?;
    let posted = end.queue().post_send(message, |message, chain| {
        chain.send([message.buffer.sge()])?;
        chain.send((1..MAX_SGE).map(|_| message.buffer.sge()))
    });
    posted.step("partial post")?;
    end.queue().drain();
    expect_equal("completions", back.load(ordering::Acquire), 1)
}
