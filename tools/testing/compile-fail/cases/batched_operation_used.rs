// SPDX-License-Identifier: GPL-2.0

//! An operation in a batch cannot be accessed, like a posted one.
//!
//! refused: E0382: borrow of moved value: `operation`

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::rdma::{
    qp::QueuePair,
    wr::{
        Batch,
        Operation, //
    },
};
use support::{
    Message,
    Peer, //
};

pub(crate) fn collect(
    batch: &mut Batch<Peer, Message>,
    queue: &QueuePair<Peer>,
    mut operation: Operation<Message>,
) {
    operation.buffer.write().fill(1);
    let pushed = batch.push(queue, operation, |message, chain| {
        chain.send([message.buffer.sge()])
    });
    drop(pushed);
    #[cfg(misuse)]
    operation.buffer.write().fill(2); //~
}
