// SPDX-License-Identifier: GPL-2.0

//! The data of a leaked region of a pool that was posted cannot be taken.
//!
//! refused: E0502: cannot borrow `*guard` as mutable because it is also borrowed as immutable

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::{
    rdma::{
        mr::{
            MrGuard,
            Region, //
        },
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
    guard: KBox<MrGuard<Buffer>>,
) {
    let guard: &'static mut MrGuard<Buffer> = KBox::leak(guard);
    let shared: &'static Region<Buffer> = guard;
    drop(queue.post_send(operation, |_, chain| chain.register(shared)));
    #[cfg(misuse)]
    drop(guard.release()); //~
}
