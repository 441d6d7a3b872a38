// SPDX-License-Identifier: GPL-2.0

//! Another thread may post a batch, so what its closure captures must be `Send`.
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
    // A region that is never freed, and that other threads can access.
    let pushed = batch.push(queue, operation, move |message, chain| {
        //~
        #[cfg(misuse)]
        chain.register(region)?;
        chain.send([message.buffer.sge()])
    });
    drop(pushed);
    region.segments();
}
