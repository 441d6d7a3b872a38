// SPDX-License-Identifier: GPL-2.0

//! A leaked buffer whose memory is posted cannot be accessed any more.
//!
//! refused: E0502: cannot borrow `*buffer` as mutable because it is also borrowed as immutable

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::rdma::{
    dma::DmaBuffer,
    qp::QueuePair,
    wr::Operation, //
};
use support::{
    Message,
    Peer, //
};

pub(crate) fn send(
    queue: &QueuePair<Peer>,
    operation: Operation<Message>,
    buffer: KBox<DmaBuffer>,
) {
    let buffer: &'static mut DmaBuffer = KBox::leak(buffer);
    let shared: &'static DmaBuffer = buffer;
    drop(queue.post_send(operation, |_, chain| chain.send([shared.sge()])));
    #[cfg(misuse)]
    buffer.read(); //~
}
