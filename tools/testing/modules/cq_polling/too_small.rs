// SPDX-License-Identifier: GPL-2.0

//! Tests that queue pairs do not share more entries of a completion queue than it has.

use crate::{
    common::{
        port_gid::PortGid,
        step_error::{
            expect_error,
            Step,
            StepError, //
        },
        task, //
    },
    pair::ONE_MESSAGE,
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::rdma::{
    cq::{
        CompletionQueue,
        Poll,
        WcError, //
    },
    device::Capabilities,
    qp::{
        self,
        Fault,
        QpContext,
        QpInitAttr,
        QueuePair,
        Rc,
        Reset, //
    },
    srq::SharedReceiveQueue, //
};

/// Receives of the shared receive queue.
const SHARED: u32 = 4;

/// The context of a queue pair that is not used.
struct Unused;

impl QpContext for Unused {
    type QpType = Rc;

    fn failed(_: &QueuePair<Self>, _: WcError) {}

    fn faulted(_: &QueuePair<Self>, _: Fault) {}
}

/// Creates queue pairs until the completion queue has too few entries. The device logs nothing, and has more
/// entries than were asked for.
pub(crate) fn run(port_gid: &PortGid<'_>) -> Result<(), StepError> {
    let alone = completion_queue(port_gid, ONE_MESSAGE.completions().saturating_sub(1))?;
    refused(create(port_gid, &alone, None))?;
    let two = completion_queue(port_gid, ONE_MESSAGE.completions().saturating_mul(2))?;
    let first = create(port_gid, &two, None).step("first queue pair")?;
    let _second = create(port_gid, &two, None).step("second queue pair")?;
    refused(create(port_gid, &two, None))?;
    drop(first);
    create(port_gid, &two, None).step("queue pair in place of the first")?;
    shared(port_gid)
}

/// Queue pairs with a shared receive queue have entries for its receives together.
fn shared(port_gid: &PortGid<'_>) -> Result<(), StepError> {
    let receives = SharedReceiveQueue::new(port_gid.pd.clone(), SHARED, |_| ());
    let receives = receives.step("shared receive queue")?;
    // A queue pair has a send, and the marker of its drain.
    let cq = completion_queue(port_gid, SHARED.saturating_add(4))?;
    let first = create(port_gid, &cq, Some(&receives)).step("first queue pair")?;
    let second = create(port_gid, &cq, Some(&receives)).step("second queue pair")?;
    refused(create(port_gid, &cq, Some(&receives)))?;
    let attributes = port_gid.device().attributes();
    if attributes.capabilities.contains(Capabilities::SRQ_RESIZE) {
        refused(receives.grow(1))?;
        drop(second);
        receives.grow(1).step("grow")?;
        refused(create(port_gid, &cq, Some(&receives)))?;
    }
    drop(first);
    Ok(())
}

fn completion_queue(
    port_gid: &PortGid<'_>,
    entries: u32,
) -> Result<Arc<CompletionQueue>, StepError> {
    let device = port_gid.device().clone();
    CompletionQueue::alloc(device, entries, 0, Poll::SoftIrq, task::NAME).step("completion queue")
}

fn create(
    port_gid: &PortGid<'_>,
    cq: &Arc<CompletionQueue>,
    shared: Option<&Arc<SharedReceiveQueue<Unused>>>,
) -> Result<Reset<Unused>> {
    let parts = QpInitAttr::new(port_gid.pd.clone(), cq.clone(), ONE_MESSAGE);
    let parts = match shared {
        Some(shared) => parts.with_shared_receives(shared.clone()),
        None => parts,
    };
    qp::create(parts, Ok(Unused), task::NAME)
}

fn refused<T>(result: Result<T>) -> Result<(), StepError> {
    expect_error("completion queue that is too small", result, ENOSPC)
}
