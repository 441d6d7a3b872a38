// SPDX-License-Identifier: GPL-2.0

//! A receive completes with the context that it was written for, whoever takes it.
//!
//! refused: E0308: mismatched types

#[path = "../support.rs"]
mod support;

use kernel::sync::Arc;
use rrdma::rdma::{
    cq::Failure,
    qp::{
        Context,
        Fault,
        Parts,
        QueuePair,
        Rc, //
    },
    srq::SharedReceiveQueue,
};
use support::Peer;

pub(crate) struct Other;

impl Context for Other {
    type Service = Rc;

    fn failed(_queue: &QueuePair<Self>, _failure: Failure) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}

#[cfg(not(misuse))]
type Shared = SharedReceiveQueue<Peer>;
#[cfg(misuse)]
type Shared = SharedReceiveQueue<Other>;

pub(crate) fn share(parts: Parts<Peer>, shared: Arc<Shared>) -> Parts<Peer> {
    parts.with_shared_receives(shared) //~
}
