// SPDX-License-Identifier: GPL-2.0

//! A posted operation cannot be accessed.
//!
//! refused: E0382: borrow of moved value: `operation`

#[path = "../support.rs"]
mod support;

use rrdma::rdma::{
    qp::QueuePair,
    wr::Operation, //
};
use support::{
    Message,
    Peer, //
};

pub(crate) fn send(queue: &QueuePair<Peer>, mut operation: Operation<Message>) {
    let posted = queue.post_send(operation, |message, chain| {
        chain.send([message.buffer.sge()])
    });
    drop(posted);
    #[cfg(misuse)]
    operation.buffer.read(); //~
}
