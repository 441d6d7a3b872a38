// SPDX-License-Identifier: GPL-2.0

//! Nothing can be posted before the queue pair is created.
//!
//! refused: E0599: no method named `queue_pair` found for reference `&Addressed<Peer>` in the current scope

#[path = "../support.rs"]
mod support;

use rrdma::rdma::{
    cm::{
        Addressed,
        Prepared, //
    },
    wr::Operation,
};
use support::{
    Message,
    Peer, //
};

#[cfg(not(misuse))]
type Step = Prepared<Peer>;
#[cfg(misuse)]
type Step = Addressed<Peer>;

pub(crate) fn receive(step: &Step, operation: Operation<Message>) {
    drop(step.queue_pair().post_receive(operation)); //~
}
