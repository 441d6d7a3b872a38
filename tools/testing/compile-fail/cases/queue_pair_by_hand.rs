// SPDX-License-Identifier: GPL-2.0

//! A queue pair is created only with an owner that destroys it in order.
//!
//! refused: E0624: associated function `create` is private

#[path = "../support.rs"]
mod support;

use rrdma::rdma::qp::QpInitAttr;
#[cfg(misuse)]
use rrdma::rdma::qp::QueuePair;
use support::Peer;

pub(crate) fn keep(parts: QpInitAttr<Peer>) -> QpInitAttr<Peer> {
    #[cfg(misuse)]
    let _ = QueuePair::<Peer>::create; //~
    parts
}
