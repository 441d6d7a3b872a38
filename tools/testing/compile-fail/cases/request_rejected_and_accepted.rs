// SPDX-License-Identifier: GPL-2.0

//! A rejected connection request cannot be answered again.
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
