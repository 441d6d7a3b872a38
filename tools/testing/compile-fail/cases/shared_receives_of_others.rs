// SPDX-License-Identifier: GPL-2.0

//! A shared receive completes only with the context that it was written for.
//!
//! refused: E0308: mismatched types

#[path = "../support.rs"]
mod support;

use kernel::sync::Arc;
use rrdma::rdma::{
    cq::WcError,
    qp::{
        Fault,
        QpContext,
        QpInitAttr,
        QueuePair,
        Rc, //
    },
    srq::SharedReceiveQueue,
};
use support::Peer;

pub(crate) struct Other;

impl QpContext for Other {
    type QpType = Rc;

    fn failed(_queue: &QueuePair<Self>, _failure: WcError) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}

#[cfg(not(misuse))]
type Shared = SharedReceiveQueue<Peer>;
#[cfg(misuse)]
type Shared = SharedReceiveQueue<Other>;

pub(crate) fn share(parts: QpInitAttr<Peer>, shared: Arc<Shared>) -> QpInitAttr<Peer> {
    parts.with_shared_receives(shared) //~
}
