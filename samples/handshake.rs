// SPDX-License-Identifier: GPL-2.0

//! Exchange of queue pair addresses with a ping-pong program of libibverbs, and nothing more.

use common::{
    exchange,
    formats::handshake::PingpongDest,
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

use rrdma::rdma::device::Gid;

#[path = "common/common.rs"]
mod common;

module! {
    type: task::Handle,
    name: "rrdma_handshake",
    authors: ["The rnvmf developers"],
    description: "Sample: exchange of queue pair addresses over TCP",
    license: "GPL",
}

rrdma::parameters! {
    device: Text<63> = "", "RDMA device name; empty: first device with an active port";
    gid_index: Number<0, 1023> = 0, "GID index of port 1; default 0";
    qpn: Number<0, 16777215> = 0, "queue pair number to send; default 0";
    psn: Number<0, 16777215> = 0, "packet sequence number to send; default 0";
    server: Text<63> = "", "address of the server; empty: be the server";
    port: Number<1, 65535> = 18515, "TCP port of the server; default 18515";
}

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let device = task.device(&parameters::device.get())?;
    let port = device.port(1).ok_or(ENODEV).step("port")?;
    let source = port.gid(parameters::gid_index.get()).step("GID")?;
    let mine = exchange::local_dest(port, &source, parameters::qpn.get(), parameters::psn.get())?;
    let mut theirs = [PingpongDest::default()];
    let server = parameters::server.get();
    let tcp_port = parameters::port.get() as u16;
    exchange::exchange(task, &server, tcp_port, &[mine], &mut theirs, |_| Ok(()))?;
    let [theirs] = theirs;
    let gid = Gid::from_bytes(theirs.gid);
    Ok(Summary::new(fmt!("exchanged addresses with {gid}")))
}
