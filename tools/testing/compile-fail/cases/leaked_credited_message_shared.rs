// SPDX-License-Identifier: GPL-2.0

//! A leaked credited message that is shared cannot be in an operation: several would send it with its one credit.
//!
//! refused: E0277: cannot be shared between threads safely

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::rdma::wr::{
    CreditedMessage,
    Operation, //
};
use support::Peer;

/// The bounds of an operation.
fn body<T: Send + 'static>(body: T) -> Result<Operation<T>> {
    Operation::new(body)
}

pub(crate) fn share(message: KBox<CreditedMessage<Peer>>) {
    let message: &'static mut CreditedMessage<Peer> = KBox::leak(message);
    #[cfg(misuse)]
    let message: &'static CreditedMessage<Peer> = message;
    drop(body(message)); //~
}
