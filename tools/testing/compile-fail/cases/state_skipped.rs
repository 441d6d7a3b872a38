// SPDX-License-Identifier: GPL-2.0

//! A queue pair cannot go from INIT to RTS without RTR.
//!
//! refused: E0599: no method named `into_rts` found for struct `rrdma::rdma::qp::Init` in the current scope

#[path = "../support.rs"]
mod support;

use rrdma::rdma::qp::{
    self,
    rc, //
};
use support::Peer;

#[cfg(not(misuse))]
type Step = qp::Rtr<Peer>;
#[cfg(misuse)]
type Step = qp::Init<Peer>;

pub(crate) fn ready(step: Step, attributes: rc::Rts) {
    drop(step.into_rts(attributes)); //~
}
