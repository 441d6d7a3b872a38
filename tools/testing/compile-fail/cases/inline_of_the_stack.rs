// SPDX-License-Identifier: GPL-2.0

//! Inline data must be valid until it is posted, which may be later than its work request is built.
//!
//! refused: E0597: `header` does not live long enough

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::rdma::{
    qp::QueuePair,
    wr::{
        Batch,
        Inline,
        Operation, //
    },
};
use support::{
    Message,
    Peer, //
};

pub(crate) fn collect(
    batch: &mut Batch<Peer, Message>,
    queue: &QueuePair<Peer>,
    operation: Operation<Message>,
    number: u8,
) {
    let pushed = batch.push(queue, operation, |_, chain| {
        #[cfg(not(misuse))]
        let header = if number == 0 { &[0] } else { &[1] };
        #[cfg(misuse)]
        let header = [number];
        #[cfg(misuse)]
        let header = &header; //~
        chain.send(Inline(header))
    });
    drop(pushed);
}
