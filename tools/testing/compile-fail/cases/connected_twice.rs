// SPDX-License-Identifier: GPL-2.0

//! A prepared connection is connected only once.
//!
//! refused: E0382: use of moved value: `prepared`

#[path = "../support.rs"]
mod support;

use rrdma::rdma::cm::{
    Parameters,
    Prepared,
    WaitLimits, //
};
use support::Peer;

pub(crate) fn connect(
    prepared: Prepared<Peer>,
    parameters: Parameters<'_>,
    patience: WaitLimits<'_>,
) {
    drop(prepared.connect(parameters, patience));
    #[cfg(misuse)]
    drop(prepared.connect(parameters, patience)); //~
}
