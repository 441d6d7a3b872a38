// SPDX-License-Identifier: GPL-2.0

//! Connecting requires a queue pair.
//!
//! refused: E0599: no method named `connect` found for struct `Addressed` in the current scope

#[path = "../support.rs"]
mod support;

use rrdma::rdma::cm::{
    Addressed,
    Parameters,
    Prepared,
    WaitLimits, //
};
use support::Peer;

#[cfg(not(misuse))]
type Step = Prepared<Peer>;
#[cfg(misuse)]
type Step = Addressed<Peer>;

pub(crate) fn connect(step: Step, parameters: Parameters<'_>, patience: WaitLimits<'_>) {
    drop(step.connect(parameters, patience)); //~
}
