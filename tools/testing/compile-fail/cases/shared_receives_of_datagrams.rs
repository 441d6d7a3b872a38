// SPDX-License-Identifier: GPL-2.0

//! Draining shared receives needs a marker, which datagram services do not have.
//!
//! refused: E0277: the trait bound `Ud: rrdma::rdma::qp::Connected` is not satisfied

use kernel::sync::Arc;
#[cfg(not(misuse))]
use rrdma::rdma::qp::Uc;
#[cfg(misuse)]
use rrdma::rdma::qp::Ud;
use rrdma::rdma::{
    cq::WcError,
    qp::{
        Fault,
        QpContext,
        QpInitAttr,
        QueuePair, //
    },
    srq::SharedReceiveQueue,
};

pub(crate) struct Talker;

impl QpContext for Talker {
    #[cfg(not(misuse))]
    type QpType = Uc;
    #[cfg(misuse)]
    type QpType = Ud;

    fn failed(_queue: &QueuePair<Self>, _failure: WcError) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}

pub(crate) fn share(
    parts: QpInitAttr<Talker>,
    shared: Arc<SharedReceiveQueue<Talker>>,
) -> QpInitAttr<Talker> {
    parts.with_shared_receives(shared) //~
}
