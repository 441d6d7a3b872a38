// SPDX-License-Identifier: GPL-2.0

//! The result of an atomic operation is written to memory of that operation.
//!
//! refused: E0597: `word` does not live long enough

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::rdma::{
    device::DeviceRef,
    dma::{
        Direction,
        DmaBuffer, //
    },
    mr::RemoteKey,
    qp::QueuePair,
    wr::Operation, //
};
use support::{
    Message,
    Peer, //
};

pub(crate) fn add(
    queue: &QueuePair<Peer>,
    operation: Operation<Message>,
    device: DeviceRef,
    key: RemoteKey,
) -> Result {
    let word = DmaBuffer::new(device, 8, Direction::FromDevice)?;
    let posted = queue.post_send(operation, |message, chain| {
        #[cfg(not(misuse))]
        let word = &message.buffer;
        #[cfg(misuse)]
        let (word, _) = (&word, message); //~
        chain.fetch_and_add(word.sge(), key, 1)
    });
    drop(posted);
    Ok(())
}
