// SPDX-License-Identifier: GPL-2.0

//! A connection request is accepted only once.
//!
//! refused: E0382: use of moved value: `accepting`

#[path = "../support.rs"]
mod support;

use rrdma::rdma::cm::{
    Accepting,
    Parameters,
    WaitLimits, //
};
use support::Peer;

pub(crate) fn accept(
    accepting: Accepting<Peer>,
    parameters: Parameters<'_>,
    patience: WaitLimits<'_>,
) {
    drop(accepting.accept(parameters, patience));
    #[cfg(misuse)]
    drop(accepting.accept(parameters, patience)); //~
}
