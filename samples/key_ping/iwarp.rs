// SPDX-License-Identifier: GPL-2.0

//! What iWARP does not have is refused before the device is asked: soft iWARP keeps the
//! entry of a request that it has refused, and completes it when the queue pair stops.

use crate::{
    common::{
        failure::{
            Failure,
            Step, //
        },
        requirement::DeviceRequirement, //
    },
    connection::{
        self,
        RcContext,
        SendBuf, //
    },
};
use kernel::prelude::*;
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

/// Nobody's memory: nothing is posted.
const NOWHERE: RemoteKey = RemoteKey {
    address: 0,
    length: u32::MAX,
    rkey: 0,
};

/// Asks for what there is not on a device of iWARP; each time the operation has to come
/// back.
pub(crate) fn run(queue: &QueuePair<RcContext>) -> Result<(), Failure> {
    if DeviceRequirement::ImmediateData
        .check(queue.device())
        .is_ok()
    {
        return Ok(());
    }
    let send_buf = connection::send_buf(queue.device())?;
    let send_buf = refused(queue, send_buf, |send_buf, chain| {
        chain.send_with_immediate([send_buf.sge()], 1)
    })?;
    let send_buf = refused(queue, send_buf, |send_buf, chain| {
        chain.write_with_immediate([send_buf.sge()], NOWHERE, 1)
    })?;
    refused(queue, send_buf, |send_buf, chain| {
        chain.read([send_buf.sge()], NOWHERE)
    })?;
    pr_info!("refused: immediate data, reads into memory that is not registered\n");
    Ok(())
}

fn refused(
    queue: &QueuePair<RcContext>,
    send_buf: Operation<SendBuf>,
    build: impl for<'a> FnOnce(&'a SendBuf, &mut Chain<'a, '_, RcContext>) -> Result,
) -> Result<Operation<SendBuf>, Failure> {
    let step = "iWARP";
    match queue.post_send(send_buf, build) {
        Err(unposted) if unposted.error == EOPNOTSUPP => Ok(unposted.operation),
        Err(unposted) => Err(unposted.error).step(step),
        Ok(()) => Err(Failure::new(step, fmt!("it was posted"))),
    }
}
