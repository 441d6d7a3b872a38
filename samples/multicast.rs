// SPDX-License-Identifier: GPL-2.0

//! Datagrams to a multicast group; a peer of `mckey`.
//!
//! All members of the group receive a datagram that is sent to it.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::rdma::multicast::{
    Membership,
    Role, //
};

#[path = "common/common.rs"]
mod common;
#[path = "rdma_cm/rdma_cm.rs"]
mod rdma_cm;
#[path = "datagram/ud_endpoint.rs"]
mod ud_endpoint;

use common::{
    step_error::{
        Step,
        StepError, //
    },
    task::{
        self,
        SampleTask,
        Summary,
        NAME, //
    },
};
use ud_endpoint::{
    UdConfig,
    UdEndpoint, //
};

module! {
    type: task::Handle,
    name: "rrdma_multicast",
    authors: ["The rnvmf developers"],
    description: "Sample: datagrams to a multicast group, a peer of mckey",
    license: "GPL",
}

rrdma::parameters! {
    group: Text<64> = "239.1.1.1", "multicast address of the group; default 239.1.1.1";
    source: Text<64> = "", "local address; empty: source address of the route";
    send: Bool = false, "send to the group instead of receiving from it";
    twice: Bool = false, "attach to the group twice, which must fail";
    size: Number<1, 4096> = 100, "datagram size in bytes; default 100";
    count: Number<1, 1000> = 10, "number of datagrams; default 10";
}

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let (count, size) = (parameters::count.get(), parameters::size.get());
    let sends = parameters::send.get();
    let mut membership = join(task, if sends { Role::SendOnly } else { Role::Full })?;
    let device = task.acquire(membership.device())?;
    let config = UdConfig {
        key: membership.qkey(),
        receives: if sends { 0 } else { count },
        size,
    };
    let endpoint = UdEndpoint::new(task, &device, membership.port(), &config)?;
    if sends {
        let group = membership
            .address_handle(endpoint.domain())
            .step("address handle")?;
        endpoint.send(count, group, membership.number(), membership.qkey())?;
        return Ok(Summary::new(fmt!("{count} datagrams of {size} bytes sent")));
    }
    membership.attach(endpoint.queue().clone()).step("attach")?;
    if parameters::twice.get() {
        let mut other = join(task, Role::Full)?;
        other
            .attach(endpoint.queue().clone())
            .step("attach twice")?;
    }
    pr_info!("receiving\n");
    let ended = || Some(StepError::new("group", fmt!("{}", membership.ended()?)));
    let first = endpoint.receive(count, ended)?.number();
    Ok(Summary::new(fmt!(
        "{count} datagrams of {size} bytes received, the first from queue pair {first}"
    )))
}

fn join(task: &SampleTask, role: Role) -> Result<Membership, StepError> {
    let cancelled = || task.is_stopped();
    let group = rdma_cm::address(task, &parameters::group.get(), 0)?;
    let source = match &*parameters::source.get() {
        "" => None,
        source => Some(rdma_cm::address(task, source, 0)?),
    };
    let wake = task.wake().clone();
    Membership::join(
        task.namespace(),
        source.as_ref(),
        &group,
        role,
        wake,
        NAME,
        rdma_cm::patience(&cancelled),
    )
    .step("group")
}
