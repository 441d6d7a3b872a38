// SPDX-License-Identifier: GPL-2.0

//! A leaked buffer whose memory is in a leaked batch cannot be accessed any more: the batch may still be posted.
//!
//! refused: E0502: cannot borrow `*buffer` as mutable because it is also borrowed as immutable

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::rdma::{
    dma::DmaBuffer,
    qp::QueuePair,
    wr::{
        Batch,
        Operation, //
    },
};
use support::{
    Message,
    Peer, //
};

pub(crate) fn collect(
    batch: KBox<Batch<Peer, Message>>,
    queue: &QueuePair<Peer>,
    operation: Operation<Message>,
    buffer: KBox<DmaBuffer>,
) -> Result {
    let batch: &'static mut Batch<Peer, Message> = KBox::leak(batch);
    let buffer: &'static mut DmaBuffer = KBox::leak(buffer);
    let shared: &'static DmaBuffer = buffer;
    drop(batch.push(queue, operation, |_, chain| chain.send([shared.sge()])));
    #[cfg(misuse)]
    buffer.read(); //~
    batch.post(queue)
}
