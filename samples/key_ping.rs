// SPDX-License-Identifier: GPL-2.0

//! Memory that a peer reads and writes by its remote key; a peer of `rping`.
//!
//! The client sends address, key and length of its data. The server reads the data and sends an
//! acknowledgement. Then the client sends address, key and length of a second buffer. The server
//! writes the data to it and sends another acknowledgement. Both buffers must now be equal.

use kernel::{
    prelude::*,
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
    step_error::StepError,
    task::{
        self,
        SampleTask,
        Summary,
        NAME, //
    },
};
use server::Server;

module! {
    type: task::Handle,
    name: "rrdma_key_ping",
    authors: ["The rnvmf developers"],
    description: "Sample: RDMA read and write of a peer's memory, a peer of rping",
    license: "GPL",
}

rrdma::parameters! {
    server: Text<64> = "", "address of the server; empty: be the server";
}

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    match &*parameters::server.get() {
        "" => Server::accept(task)?.serve(),
        server => client::run(task, server),
    }
}
