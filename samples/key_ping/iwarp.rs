// SPDX-License-Identifier: GPL-2.0

//! What iWARP does not have is refused before the device is asked: soft iWARP keeps the
//! entry of a request that it has refused, and completes it when the queue pair stops.

use crate::{
    common::{
        failure::{
            Failure,
            Step, //
        },
        need::Need, //
    },
    link::{
        self,
        Link,
        Outbox, //
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
pub(crate) fn run(queue: &QueuePair<Link>) -> Result<(), Failure> {
    if Need::ImmediateData.of(queue.device()).is_ok() {
        return Ok(());
    }
    let outbox = link::outbox(queue.device())?;
    let outbox = refused(queue, outbox, |outbox, chain| {
        chain.send_with_immediate([outbox.sge()], 1)
    })?;
    let outbox = refused(queue, outbox, |outbox, chain| {
        chain.write_with_immediate([outbox.sge()], NOWHERE, 1)
    })?;
    refused(queue, outbox, |outbox, chain| {
        chain.read([outbox.sge()], NOWHERE)
    })?;
    pr_info!("refused: immediate data, reads into memory that is not registered\n");
    Ok(())
}

fn refused(
    queue: &QueuePair<Link>,
    outbox: Operation<Outbox>,
    build: impl for<'a> FnOnce(&'a Outbox, &mut Chain<'a, '_, Link>) -> Result,
) -> Result<Operation<Outbox>, Failure> {
    let step = "iWARP";
    match queue.post_send(outbox, build) {
        Err(unposted) if unposted.error == EOPNOTSUPP => Ok(unposted.operation),
        Err(unposted) => Err(unposted.error).step(step),
        Ok(()) => Err(Failure::new(step, fmt!("it was posted"))),
    }
}
