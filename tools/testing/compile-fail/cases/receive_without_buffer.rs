// SPDX-License-Identifier: GPL-2.0

//! A receive must name a buffer.
//!
//! refused: E0277: the trait bound `Exposed: rrdma::rdma::wr::Receive<Peer>` is not satisfied

#[path = "../support.rs"]
mod support;

use rrdma::rdma::{
    qp::QueuePair,
    wr::Operation, //
};
use support::{
    Exposed,
    Message,
    Peer, //
};

pub(crate) fn receive(
    queue: &QueuePair<Peer>,
    message: Operation<Message>,
    exposed: Operation<Exposed>,
) {
    drop(queue.post_receive(message));
    #[cfg(misuse)]
    drop(queue.post_receive(exposed)); //~
}
