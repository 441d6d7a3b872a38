// SPDX-License-Identifier: GPL-2.0

//! A transition consumes the state before it.
//!
//! refused: E0382: use of moved value: `rtr`

#[path = "../support.rs"]
mod support;

use rrdma::rdma::qp::{
    rc,
    Rtr, //
};
use support::Peer;

pub(crate) fn ready(rtr: Rtr<Peer>, attributes: rc::Rts) {
    drop(rtr.into_rts(attributes));
    #[cfg(misuse)]
    drop(rtr.into_rts(attributes)); //~
}
