// SPDX-License-Identifier: GPL-2.0

//! A leaked operation is borrowed for ever, so it cannot be posted.
//!
//! refused: E0507: cannot move out of a mutable reference

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::rdma::{
    qp::QueuePair,
    wr::Operation, //
};
use support::{
    Message,
    Peer, //
};

pub(crate) fn receive(queue: &QueuePair<Peer>, operation: KBox<Operation<Message>>) {
    #[cfg(not(misuse))]
    let operation = KBox::into_inner(operation);
    #[cfg(misuse)]
    let operation = *KBox::leak(operation); //~
    drop(queue.post_receive(operation));
}
