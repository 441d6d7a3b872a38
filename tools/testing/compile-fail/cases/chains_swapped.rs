// SPDX-License-Identifier: GPL-2.0

//! Work requests of one operation cannot be posted for another operation.
//!
//! refused: E0521: borrowed data escapes outside of closure

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

pub(crate) fn send(
    queue: &QueuePair<Peer>,
    first: Operation<Message>,
    second: Operation<Message>,
) -> Result {
    let posted = queue.post_send(first, |message, chain| {
        chain.send([message.buffer.sge()])?;
        let posted = queue.post_send(second, |message, other| {
            other.send([message.buffer.sge()])?;
            #[cfg(misuse)]
            core::mem::swap(chain, other); //~
            Ok(())
        });
        drop(posted);
        Ok(())
    });
    drop(posted);
    Ok(())
}
