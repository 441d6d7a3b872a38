// SPDX-License-Identifier: GPL-2.0

//! A receive buffer cannot be read while it is posted again.
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

pub(crate) fn again(queue: &QueuePair<Peer>, mut operation: Operation<Message>) -> Option<u8> {
    let bytes = operation.buffer.read();
    let first = bytes.first().copied();
    drop(queue.post_receive(operation)); //~
    #[cfg(misuse)]
    let first = bytes.first().copied();
    first
}
