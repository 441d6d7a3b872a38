// SPDX-License-Identifier: GPL-2.0

//! Each step of connecting consumes the step before it.
//!
//! refused: E0382: use of moved value: `id`

#[path = "../support.rs"]
mod support;

use rrdma::rdma::cm::{
    Address,
    Id,
    WaitLimits, //
};
use support::Peer;

pub(crate) fn resolve(id: Id<Peer>, to: &Address, patience: WaitLimits<'_>) {
    drop(id.resolve(None, to, patience));
    #[cfg(misuse)]
    drop(id.resolve(None, to, patience)); //~
}
