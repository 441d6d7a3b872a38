// SPDX-License-Identifier: GPL-2.0

//! Memory that a peer reads and writes by its key: a peer of `rping`.
//!
//! The client sends address, key and length of its data; the server reads the data
//! and says that it has it. The client sends address, key and length of a sink; the
//! server writes the data to it and says that it is there. Then what was read and
//! what was written back must be the same.

use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};

#[path = "key_ping/client.rs"]
mod client;
#[path = "common/common.rs"]
mod common;
#[path = "key_ping/connection.rs"]
mod connection;
#[path = "rdma_cm/rdma_cm.rs"]
mod rdma_cm;
#[path = "key_ping/server.rs"]
mod server;

use common::{
    failure::Failure,
    task::{
        self,
        SampleTask,
        Summary, //
    },
};
use server::Server;

module! {
    type: task::Handle,
    name: "rrdma_key_ping",
    authors: ["The rnvmf developers"],
    description: "Sample: memory that a peer reads and writes by its key, a peer of rping",
    license: "GPL",
}

rrdma::parameters! {
    server: Text<64> = "", "address of the server; empty: be the server";
}

/// What `rdma res` names as the owner of what the sample makes.
const NAME: &CStr = c"rrdma_key_ping";

fn run(task: &Arc<SampleTask>) -> Result<Summary, Failure> {
    match &*parameters::server.get() {
        "" => Server::accept(task)?.serve(),
        server => client::run(task, server),
    }
}
