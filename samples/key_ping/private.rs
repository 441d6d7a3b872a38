// SPDX-License-Identifier: GPL-2.0

//! Private data: what the two ends tell each other with the messages that connect
//! them.

use crate::{
    common::failure::Failure,
    parameters, //
};
use kernel::prelude::*;
use rrdma::rdma::cm::PeerParameters;

/// What either end tells, as far as it is to tell. No byte is 0: zeroes fill up what
/// is shorter than the message has room for.
static DATA: [u8; 256] = [0xa5; 256];

/// What this end tells.
pub(crate) fn told() -> &'static [u8] {
    DATA.get(..parameters::private_data.get() as usize)
        .unwrap_or(&DATA)
}

/// Fails if the peer has told something else than is demanded of it.
pub(crate) fn check(peer: &PeerParameters) -> Result<(), Failure> {
    let wanted = parameters::demanded.get() as usize;
    if wanted == 0 {
        return Ok(());
    }
    let wrong = |cause| Err(Failure::new("private data", cause));
    let told = peer.private_data();
    let end = told.iter().rposition(|byte| *byte != 0);
    let length = end.map_or(0, |last| last.saturating_add(1));
    if length != wanted {
        return wrong(fmt!("{length} bytes and not {wanted}"));
    }
    // What follows it is the zeroes that the connection manager adds.
    if told.get(..length) != DATA.get(..length) {
        return wrong(fmt!("other bytes than the sample's"));
    }
    Ok(())
}
