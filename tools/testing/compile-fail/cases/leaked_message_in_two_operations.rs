// SPDX-License-Identifier: GPL-2.0

//! A leaked message belongs to the operation that sends it first.
//!
//! Another one would change the entries of a work request that is not posted yet.
//!
//! refused: E0382: use of moved value

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

pub(crate) fn send(
    queue: &QueuePair<Peer>,
    operation: Operation<Exposed>,
    other: Operation<Exposed>,
    message: KBox<Message>,
) {
    let message: &'static mut Message = KBox::leak(message);
    let posted = queue.post_send(operation, |exposed, chain| {
        chain.send_message_with(message, &exposed.region)?;
        drop(queue.post_send(other, |other, nested| {
            //~
            #[cfg(misuse)]
            nested.send_message_with(message, &other.region)?;
            nested.send(other.region.entries())
        }));
        Ok(())
    });
    drop(posted);
}
