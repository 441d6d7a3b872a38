// SPDX-License-Identifier: GPL-2.0

//! An operation is posted once, until its completion returns it.
//!
//! refused: E0382: use of moved value: `operation`

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

pub(crate) fn receive(queue: &QueuePair<Peer>, operation: Operation<Message>) {
    drop(queue.post_receive(operation));
    #[cfg(misuse)]
    drop(queue.post_receive(operation)); //~
}
