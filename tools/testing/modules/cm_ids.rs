// SPDX-License-Identifier: GPL-2.0

//! Tests the source ports of CM IDs that connect.

use common::{
    step_error::{
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
use rrdma::{
    errno::EADDRINUSE,
    rdma::{
        cm::{
            Addressed,
            Cause,
            Endpoint,
            Id,
            Lost, //
        },
        cq::WcError,
        qp::{
            Fault,
            QpContext,
            QueuePair,
            Rc, //
        },
    },
};

#[path = "../../../samples/common/common.rs"]
mod common;
#[path = "../../../samples/rdma_cm/rdma_cm.rs"]
mod rdma_cm;

module! {
    type: task::Handle,
    name: "rrdma_test_cm_ids",
    authors: ["The rnvmf developers"],
    description: "Test: source ports of CM IDs",
    license: "GPL",
}

rrdma::parameters! {
    source: Text<64> = "", "local address; empty: nothing is tested";
    peer: Text<64> = "", "address of a host in the subnet";
}

/// The source port of all CM IDs.
const PORT: u32 = 7471;

/// The type of a CM ID that is never connected.
struct NoPeer;

impl QpContext for NoPeer {
    type QpType = Rc;

    fn failed(_queue: &QueuePair<Self>, _failure: WcError) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}

impl Endpoint for NoPeer {
    fn lost(_queue: &QueuePair<Self>, _cause: Lost) {}
}

/// Whether a CM ID shares its source port with others.
enum Sharing {
    Allowed,
    Refused,
}

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    if parameters::source.get().is_empty() {
        return Ok(Summary::new(fmt!("nothing tested")));
    }
    let _first = bound(task, Sharing::Allowed)?.step("first")?;
    let _second = bound(task, Sharing::Allowed)?.step("second")?;
    match bound(task, Sharing::Refused)? {
        Err(error) if matches!(error.cause, Cause::Code(EADDRINUSE)) => {
            Ok(Summary::new(fmt!("two CM IDs share a port")))
        }
        Err(error) => Err(error).step("third"),
        Ok(_) => Err(StepError::new("third", fmt!("bound to the port of others"))),
    }
}

/// Binds a CM ID to the source port.
fn bound(
    task: &SampleTask,
    sharing: Sharing,
) -> Result<Result<Addressed<NoPeer>, rrdma::rdma::cm::Error>, StepError> {
    let cancelled = || task.is_stopped();
    let source = rdma_cm::address(task, &parameters::source.get(), PORT)?;
    let peer = rdma_cm::address(task, &parameters::peer.get(), PORT)?;
    let id = Id::new(task.namespace(), task.wake().clone(), task::NAME).step("CM ID")?;
    match sharing {
        Sharing::Allowed => id.reuse_address().step("port")?,
        Sharing::Refused => (),
    }
    Ok(id.resolve(Some(&source), &peer, rdma_cm::patience(&cancelled)))
}
