// SPDX-License-Identifier: GPL-2.0

//! Another thread may complete an operation, so its body must be `Send`.
//!
//! refused: E0277: `*mut u8` cannot be sent between threads safely

#[path = "../support.rs"]
mod support;

use rrdma::rdma::{
    cq::Completion,
    qp::QueuePair,
    wr::{
        Complete,
        Operation, //
    },
};
use support::Peer;

#[cfg(not(misuse))]
type Address = usize;
#[cfg(misuse)]
type Address = *mut u8;

pub(crate) struct Local {
    pub(crate) place: Address,
}

impl Complete<Peer> for Local {
    //~
    fn complete(_: Operation<Self>, _: &QueuePair<Peer>, _: &Completion<'_>) {}
}
