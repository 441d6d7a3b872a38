// SPDX-License-Identifier: GPL-2.0

//! A message is lent mutably, so a leaked one that is shared cannot be sent.
//!
//! refused: E0277: MessageMut

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::rdma::{
    qp::QueuePair,
    wr::{
        Message,
        Operation, //
    },
};
use support::{
    Exposed,
    Peer, //
};

pub(crate) fn send(queue: &QueuePair<Peer>, operation: Operation<Exposed>, message: KBox<Message>) {
    let message: &'static mut Message = KBox::leak(message);
    #[cfg(misuse)]
    let message: &'static Message = message;
    drop(queue.post_send(operation, |_, chain| {
        chain.send_message(message) //~
    }));
}
