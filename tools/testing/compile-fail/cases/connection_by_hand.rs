// SPDX-License-Identifier: GPL-2.0

//! A connection is created only by connecting or accepting.
//!
//! refused: E0624: associated function `new` is private

#[path = "../support.rs"]
mod support;

use rrdma::rdma::cm::{
    Connected,
    Error,
    Parameters,
    Prepared,
    WaitLimits, //
};
use support::Peer;

pub(crate) fn connect(
    prepared: Prepared<Peer>,
    parameters: Parameters<'_>,
    patience: WaitLimits<'_>,
) -> Result<Connected<Peer>, Error> {
    #[cfg(misuse)]
    let _ = Connected::<Peer>::new; //~
    prepared.connect(parameters, patience)
}
