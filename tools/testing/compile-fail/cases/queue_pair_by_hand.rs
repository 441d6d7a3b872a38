// SPDX-License-Identifier: GPL-2.0

//! A queue pair belongs to a connection, which destroys it in order.
//!
//! refused: E0624: associated function `create` is private

#[path = "../support.rs"]
mod support;

use rrdma::rdma::qp::Parts;
#[cfg(misuse)]
use rrdma::rdma::qp::QueuePair;
use support::Peer;

pub(crate) fn keep(parts: Parts<Peer>) -> Parts<Peer> {
    #[cfg(misuse)]
    let _ = QueuePair::<Peer>::create; //~
    parts
}
