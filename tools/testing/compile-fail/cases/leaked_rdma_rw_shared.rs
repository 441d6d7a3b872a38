// SPDX-License-Identifier: GPL-2.0

//! Nobody keeps a reference to the data of a posted RDMA read, which the device writes.
//!
//! refused: E0502: cannot borrow `*read` as mutable

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
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
    scatter::Buffer, //
};
use support::Peer;

pub(crate) struct Leaked {
    read: Option<KBox<RdmaRw<Buffer, Peer>>>,
    seen: Option<&'static Buffer>,
}

impl Complete<Peer> for Leaked {
    fn complete(_: Operation<Self>, _: &QueuePair<Peer>, _: &Completion<'_>) {}
}

impl RwOperation<Peer> for Leaked {
    type Data = Buffer;

    fn rdma_rw(&mut self) -> Option<&mut RdmaRw<Buffer, Peer>> {
        let read: &'static mut RdmaRw<Buffer, Peer> = KBox::leak(self.read.take()?);
        #[cfg(misuse)]
        {
            self.seen = Some(read.data());
        }
        Some(read) //~
    }
}

pub(crate) fn post(queue: &QueuePair<Peer>, operation: Operation<Leaked>) {
    drop(queue.post_rdma_rw(operation));
}
