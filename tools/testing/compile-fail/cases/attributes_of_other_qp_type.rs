// SPDX-License-Identifier: GPL-2.0

//! A transition takes only the attributes of the queue pair's transport service.
//!
//! refused: E0308: mismatched types

#[path = "../support.rs"]
mod support;

#[cfg(not(misuse))]
use rrdma::rdma::qp::rc as service;
#[cfg(misuse)]
use rrdma::rdma::qp::uc as service;
use rrdma::rdma::qp::Rtr;
use support::Peer;

pub(crate) fn ready(rtr: Rtr<Peer>, attributes: service::Rts) {
    drop(rtr.into_rts(attributes)); //~
}
