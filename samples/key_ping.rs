// SPDX-License-Identifier: GPL-2.0

//! Memory that a peer reads and writes by its key: a peer of `rping`.
//!
//! The client sends address, key and length of its data; the server reads the data
//! and says that it has it. The client sends address, key and length of a sink; the
//! server writes the data to it and says that it is there. Then what was read and
//! what was written back must be the same.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::rdma::{
    cq::{
        CompletionQueue,
        Poll, //
    },
    device::DeviceRef,
    pd::ProtectionDomain,
    qp::{
        QpCap,
        QpInitAttr, //
    },
    rw::RdmaRwCap,
};

#[path = "key_ping/client.rs"]
mod client;
#[path = "common/common.rs"]
mod common;
#[path = "key_ping/connection.rs"]
mod connection;
#[path = "key_ping/iwarp.rs"]
mod iwarp;
#[path = "key_ping/private.rs"]
mod private;
#[path = "rdma_cm/rdma_cm.rs"]
mod rdma_cm;
#[path = "key_ping/server.rs"]
mod server;

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
use connection::RcContext;

module! {
    type: task::Handle,
    name: "rrdma_key_ping",
    authors: ["The rnvmf developers"],
    description: "Sample: memory that a peer reads and writes by its key, a peer of rping",
    license: "GPL",
}

rrdma::parameters! {
    server: Text<64> = "", "address of the server; empty: be the server";
    listen: Text<64> = "0.0.0.0", "address to listen at, as the server";
    port: Number<1, 65535> = 7174, "port of the connection manager";
    size: Number<1, 1048576> = 64, "bytes of a ping; as the server, of the longest that is taken";
    count: Number<1, 1000000> = 4, "pings, as the client";
    validate: Flag = true, "compare what comes back with what was read, as the client";
    private_data: Number<0, 256> = 0, "bytes of private data to tell the peer when connecting";
    demanded: Number<0, 196> = 0, "bytes of private data that the peer must tell; 0: whatever it likes";
}

/// What `rdma res` names as the owner of what the sample makes.
const NAME: &CStr = c"rrdma_key_ping";

/// The work requests that are ever posted at once: one receive, one message or
/// invalidation, and the registration before it.
const CAPACITY: QpCap = QpCap {
    sends: 4,
    receives: 1,
    send_sges: 1,
};

fn run(task: &Arc<SampleTask>) -> Result<Summary, Failure> {
    match &*parameters::server.get() {
        "" => server::run(task),
        server => client::run(task, server),
    }
}

/// What the queue pair is made of. Completions are handled where one may sleep, so
/// that what they drop may be anything.
fn parts(
    device: &DeviceRef,
    transfers: Option<RdmaRwCap>,
) -> Result<QpInitAttr<RcContext>, Failure> {
    let pd = ProtectionDomain::new(device.clone(), NAME).step("protection domain")?;
    let needed = transfers.map_or(0, |transfers| transfers.requests(device, CAPACITY));
    let entries = CAPACITY.completions().saturating_add(needed);
    let cq = CompletionQueue::alloc(device.clone(), entries, 0, Poll::Workqueue, NAME)
        .step("completion queue")?;
    let parts = QpInitAttr::new(pd, cq, CAPACITY);
    Ok(match transfers {
        Some(transfers) => parts.with_rdma_rw(transfers),
        None => parts,
    })
}
