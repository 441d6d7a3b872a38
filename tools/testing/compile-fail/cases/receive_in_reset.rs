// SPDX-License-Identifier: GPL-2.0

//! Nothing can be posted to a queue pair in the RESET state.
//!
//! refused: E0599: no method named `post_receive` found for reference `&rrdma::rdma::qp::Reset<Peer>` in the current scope

#[path = "../support.rs"]
mod support;

use rrdma::rdma::{
    qp,
    wr::Operation, //
};
use support::{
    Message,
    Peer, //
};

#[cfg(not(misuse))]
type Step = qp::Init<Peer>;
#[cfg(misuse)]
type Step = qp::Reset<Peer>;

pub(crate) fn post(step: &Step, operation: Operation<Message>) {
    drop(step.post_receive(operation)); //~
}
