// SPDX-License-Identifier: GPL-2.0

//! Datagrams to a group: a peer of `mckey`.
//!
//! Members of the group receive what anyone sends to it.

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
#[path = "manager/manager.rs"]
mod manager;
#[path = "datagram/party.rs"]
mod party;

use common::{
    failure::{
        Failure,
        Step, //
    },
    job::{
        self,
        Job,
        Line, //
    },
};
use party::{
    Party,
    Plan, //
};

module! {
    type: job::Handle,
    name: "rrdma_multicast",
    authors: ["The rnvmf developers"],
    description: "Sample: datagrams to a multicast group, a peer of mckey",
    license: "GPL",
}

rrdma::parameters! {
    group: Text<64> = "239.1.1.1", "address of the group";
    source: Text<64> = "", "address to join from; empty: the one that the route has";
    send: Flag = false, "send to the group instead of receiving";
    twice: Flag = false, "attach to the group twice, which is refused";
    size: Number<1, 4096> = 100, "bytes of a datagram";
    count: Number<1, 1000> = 10, "datagrams";
}

/// What `rdma res` names as the owner of what the sample makes.
const NAME: &CStr = c"rrdma_multicast";

fn run(job: &Arc<Job>) -> Result<Line, Failure> {
    let (count, size) = (parameters::count.get(), parameters::size.get());
    let sends = parameters::send.get();
    let mut membership = join(job, if sends { Role::SendOnly } else { Role::Full })?;
    let device = job.acquire(membership.device())?;
    let plan = Plan {
        owner: NAME,
        key: membership.qkey(),
        receives: if sends { 0 } else { count },
        size,
    };
    let party = Party::new(job, &device, membership.port(), &plan)?;
    if sends {
        let group = membership
            .address_handle(party.domain())
            .step("address handle")?;
        party.send(count, group, membership.number(), membership.qkey())?;
        return Ok(Line::new(fmt!("{count} datagrams of {size} bytes sent")));
    }
    membership.attach(party.queue().clone()).step("attach")?;
    if parameters::twice.get() {
        let mut other = join(job, Role::Full)?;
        other.attach(party.queue().clone()).step("attach twice")?;
    }
    pr_info!("receives\n");
    let ended = || Some(Failure::new("group", fmt!("{}", membership.ended()?)));
    let first = party.receive(count, ended)?.number();
    Ok(Line::new(fmt!(
        "{count} datagrams of {size} bytes received, the first from queue pair {first}"
    )))
}

fn join(job: &Job, role: Role) -> Result<Membership, Failure> {
    let cancelled = || job.is_stopped();
    let group = manager::address(job, &parameters::group.get(), 0)?;
    let source = match &*parameters::source.get() {
        "" => None,
        source => Some(manager::address(job, source, 0)?),
    };
    let wake = job.wake().clone();
    Membership::join(
        job.namespace(),
        source.as_ref(),
        &group,
        role,
        wake,
        NAME,
        manager::patience(&cancelled),
    )
    .step("group")
}
