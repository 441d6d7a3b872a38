// SPDX-License-Identifier: GPL-2.0

//! Completions on any processor use the context of a queue pair, so it must be `Sync`.
//!
//! refused: E0277: `Cell<u32>` cannot be shared between threads safely

use core::{
    cell::Cell,
    sync::atomic::AtomicU32, //
};
use rrdma::rdma::{
    cq::WcError,
    qp::{
        Fault,
        QpContext,
        QueuePair,
        Rc, //
    },
};

#[cfg(not(misuse))]
type Count = AtomicU32;
#[cfg(misuse)]
type Count = Cell<u32>;

pub(crate) struct Counting {
    pub(crate) completed: Count,
}

impl QpContext for Counting {
    //~
    type QpType = Rc;

    fn failed(_queue: &QueuePair<Self>, _failure: WcError) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}
