// SPDX-License-Identifier: GPL-2.0

//! A connection cannot be connected again.
//!
//! refused: E0599: no method named `connect` found for struct `rrdma::rdma::cm::Connected` in the current scope

#[path = "../support.rs"]
mod support;

use rrdma::rdma::cm::{
    Connected,
    Parameters,
    Prepared,
    WaitLimits, //
};
use support::Peer;

#[cfg(not(misuse))]
type Step = Prepared<Peer>;
#[cfg(misuse)]
type Step = Connected<Peer>;

pub(crate) fn connect(step: Step, parameters: Parameters<'_>, patience: WaitLimits<'_>) {
    drop(step.connect(parameters, patience)); //~
}
