// SPDX-License-Identifier: GPL-2.0

//! The data of a leaked mapping cannot be taken while work requests may name it.
//!
//! refused: E0502: cannot borrow `*mapped` as mutable because it is also borrowed as immutable

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::{
    rdma::{
        dma::Mapped,
        qp::QueuePair,
        wr::Operation, //
    },
    scatter::Buffer, //
};
use support::{
    Message,
    Peer, //
};

pub(crate) fn send(
    queue: &QueuePair<Peer>,
    operation: Operation<Message>,
    mapped: KBox<Mapped<Buffer>>,
) {
    let mapped: &'static mut Mapped<Buffer> = KBox::leak(mapped);
    let shared: &'static Mapped<Buffer> = mapped;
    drop(queue.post_send(operation, |_, chain| chain.send(shared.entries())));
    #[cfg(misuse)]
    drop(mapped.release()); //~
}
