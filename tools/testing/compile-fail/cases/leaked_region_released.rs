// SPDX-License-Identifier: GPL-2.0

//! The data of a leaked region that was posted cannot be taken.
//!
//! refused: E0502: cannot borrow `*region` as mutable because it is also borrowed as immutable

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::{
    rdma::{
        mr::Region,
        qp::QueuePair,
        wr::Operation, //
    },
    scatter::Buffer, //
};
use support::{
    Message,
    Peer, //
};

pub(crate) fn register(
    queue: &QueuePair<Peer>,
    operation: Operation<Message>,
    region: KBox<Region<Buffer>>,
) {
    let region: &'static mut Region<Buffer> = KBox::leak(region);
    let shared: &'static Region<Buffer> = region;
    drop(queue.post_send(operation, |_, chain| chain.register(shared)));
    #[cfg(misuse)]
    drop(region.release()); //~
}
