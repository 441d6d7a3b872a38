// SPDX-License-Identifier: GPL-2.0

//! A request is answered once: who rejects it has none to accept.
//!
//! refused: E0382: use of moved value: `incoming`

#[path = "../support.rs"]
mod support;

use rrdma::rdma::cm::Incoming;
use support::Peer;

pub(crate) fn answer(incoming: Incoming<Peer>) {
    drop(incoming.reject(&[]));
    #[cfg(misuse)]
    drop(incoming.reject(&[])); //~
}
