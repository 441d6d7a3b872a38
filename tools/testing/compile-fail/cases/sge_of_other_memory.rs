// SPDX-License-Identifier: GPL-2.0

//! An operation sends its own memory only, which it keeps until the completion.
//!
//! refused: E0521: borrowed data escapes outside of function

#[path = "../support.rs"]
mod support;

use rrdma::rdma::{
    dma::DmaBuffer,
    qp::QueuePair,
    wr::Operation, //
};
use support::{
    Message,
    Peer, //
};

pub(crate) fn send(queue: &QueuePair<Peer>, operation: Operation<Message>, other: &DmaBuffer) {
    let _ = other.sge();
    let posted = queue.post_send(operation, |message, chain| {
        #[cfg(misuse)]
        let message = other;
        #[cfg(not(misuse))]
        let message = &message.buffer;
        chain.send([message.sge()]) //~
    });
    drop(posted);
}
