// SPDX-License-Identifier: GPL-2.0

//! What waits in a batch may be posted by another thread, and with it all that it registers.
//!
//! refused: E0277: cannot be shared between threads safely

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::{
    rdma::{
        mr::Region,
        qp::QueuePair,
        wr::{
            Batch,
            Operation, //
        },
    },
    scatter::Buffer,
};
use support::{
    Message,
    Peer, //
};

pub(crate) fn collect(
    batch: &mut Batch<Peer, Message>,
    queue: &QueuePair<Peer>,
    operation: Operation<Message>,
    region: &'static Region<Buffer>,
) {
    // A region that is kept for ever, and of which others have the address.
    let pushed = batch.push(queue, operation, move |message, chain| {
        //~
        #[cfg(misuse)]
        chain.register(region)?;
        chain.send([message.buffer.sge()])
    });
    drop(pushed);
    region.segments();
}
