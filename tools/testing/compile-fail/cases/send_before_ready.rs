// SPDX-License-Identifier: GPL-2.0

//! A queue pair that is not in the RTS state cannot send.
//!
//! refused: E0599: no method named `queue_pair` found for struct `rrdma::rdma::qp::Rtr` in the current scope

#[path = "../support.rs"]
mod support;

use rrdma::rdma::qp;
use support::Peer;

#[cfg(not(misuse))]
type Step = qp::Rts<Peer>;
#[cfg(misuse)]
type Step = qp::Rtr<Peer>;

pub(crate) fn drain(step: Step) {
    step.queue_pair().drain(); //~
}
