// SPDX-License-Identifier: GPL-2.0

//! A completion is valid only in its handler.
//!
//! refused: E0521: borrowed data escapes outside of associated function

#[path = "../support.rs"]
mod support;

use core::cell::Cell;
use rrdma::rdma::{
    cq::Completion,
    qp::QueuePair,
    wr::{
        Complete,
        Operation, //
    },
};
use support::Peer;

pub(crate) struct Keeper {
    pub(crate) succeeded: Cell<bool>,
    pub(crate) kept: Stored,
}

#[cfg(not(misuse))]
type Stored = ();
#[cfg(misuse)]
type Stored = fn(&'static Completion<'static>);

impl Complete<Peer> for Keeper {
    fn complete(keeper: Operation<Self>, _: &QueuePair<Peer>, completion: &Completion<'_>) {
        keeper.succeeded.set(completion.result().is_ok());
        #[cfg(misuse)]
        (keeper.kept)(completion); //~
    }
}
