// SPDX-License-Identifier: GPL-2.0

//! A completion cannot be passed to another thread.
//!
//! refused: E0277: between threads safely

#[path = "../support.rs"]
mod support;

use rrdma::rdma::{
    cq::Completion,
    qp::QueuePair,
    wr::{
        Complete,
        Operation, //
    },
};
use support::Peer;

pub(crate) struct Handler;

fn elsewhere<T: Send>(_: &T) {}

impl Complete<Peer> for Handler {
    fn complete(handler: Operation<Self>, _: &QueuePair<Peer>, completion: &Completion<'_>) {
        elsewhere(&handler);
        #[cfg(misuse)]
        elsewhere(completion); //~
    }
}
