// SPDX-License-Identifier: GPL-2.0

//! An operation sends only its own memory, which it keeps until it completes.
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
