// SPDX-License-Identifier: GPL-2.0

//! The write guard of a buffer must be dropped before the buffer is posted.
//!
//! refused: E0505: cannot move out of `operation` because it is borrowed

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
    let mut bytes = operation.buffer.write();
    bytes.fill(0);
    #[cfg(not(misuse))]
    drop(bytes);
    let posted = queue.post_send(operation, |message, chain| {
        //~
        chain.send([message.buffer.sge()])
    });
    drop(posted);
}
