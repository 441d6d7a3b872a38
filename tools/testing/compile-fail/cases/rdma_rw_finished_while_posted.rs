// SPDX-License-Identifier: GPL-2.0

//! Data of an RDMA read or write is returned only after its completion.
//!
//! refused: E0382: use of moved value: `operation`

#[path = "../support.rs"]
mod support;

use rrdma::{
    rdma::{
        cq::Completion,
        qp::QueuePair,
        rw::{
            RdmaRw,
            RwOperation, //
        },
        wr::{
            Complete,
            Operation, //
        },
    },
    scatter::Buffer,
};
use support::Peer;

pub(crate) struct Moved(RdmaRw<Buffer, Peer>);

impl Complete<Peer> for Moved {
    fn complete(operation: Operation<Self>, _: &QueuePair<Peer>, _: &Completion<'_>) {
        drop(operation.into_inner().0.finish());
    }
}

impl RwOperation<Peer> for Moved {
    type Data = Buffer;

    fn rdma_rw(&mut self) -> Option<&mut RdmaRw<Buffer, Peer>> {
        Some(&mut self.0)
    }
}

pub(crate) fn post(queue: &QueuePair<Peer>, operation: Operation<Moved>) {
    let posted = queue.post_rdma_rw(operation);
    #[cfg(misuse)]
    drop(operation.into_inner().0.finish()); //~
    drop(posted);
}
