// SPDX-License-Identifier: GPL-2.0

//! Tests that work requests that iWARP does not support are refused before they reach the device.
//! Soft-iWARP keeps the queue entry of a refused work request, and completes it when the queue pair
//! stops.

use common::{
    requirement::DeviceRequirement,
    step_error::{
        expect_unposted,
        StepError, //
    },
    task::{
        self,
        SampleTask,
        Summary,
        NAME, //
    },
};
use connection::{
    RcContext,
    SendBuf, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    errno::EOPNOTSUPP,
    rdma::{
        mr::RemoteKey,
        qp::QueuePair,
        wr::{
            Chain,
            Operation, //
        },
    },
};
use server::Server;

#[path = "../../../samples/common/common.rs"]
mod common;
#[path = "../../../samples/key_ping/connection.rs"]
#[allow(dead_code)]
mod connection;
#[path = "../../../samples/rdma_cm/rdma_cm.rs"]
mod rdma_cm;
#[path = "../../../samples/key_ping/server.rs"]
mod server;

module! {
    type: task::Handle,
    name: "rrdma_test_iwarp",
    authors: ["The rnvmf developers"],
    description: "Test: work requests that iWARP does not support",
    license: "GPL",
}

/// Posts unsupported work requests on the connection with a client, and then serves the client.
fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let server = Server::accept(task)?;
    refusals(server.queue())?;
    server.serve()
}

/// Any key will do: nothing is posted.
const NOWHERE: RemoteKey = RemoteKey {
    address: 0,
    length: u32::MAX,
    rkey: 0,
};

/// Checks that unsupported work requests are refused. Each time, posting must return the operation.
fn refusals(queue: &QueuePair<RcContext>) -> Result<(), StepError> {
    let device = queue.device();
    if DeviceRequirement::ImmediateData.check(device).is_ok() {
        return Err(StepError::new(
            "device",
            fmt!("{} is not an iWARP device", device.name()),
        ));
    }
    let send_buf = connection::send_buf(device)?;
    let send_buf = refused(queue, send_buf, |send_buf, chain| {
        chain.send_with_immediate([send_buf.sge()], 1)
    })?;
    let send_buf = refused(queue, send_buf, |send_buf, chain| {
        chain.write_with_immediate([send_buf.sge()], NOWHERE, 1)
    })?;
    refused(queue, send_buf, |send_buf, chain| {
        chain.read([send_buf.sge()], NOWHERE)
    })?;
    pr_info!("refused: immediate data, reads into unregistered memory\n");
    Ok(())
}

fn refused(
    queue: &QueuePair<RcContext>,
    send_buf: Operation<SendBuf>,
    build: impl for<'a> FnOnce(&'a mut SendBuf, &mut Chain<'a, '_, RcContext>) -> Result,
) -> Result<Operation<SendBuf>, StepError> {
    expect_unposted("iWARP", queue.post_send(send_buf, build), EOPNOTSUPP)
}
