// SPDX-License-Identifier: GPL-2.0

//! A queue pair is created after the address is resolved, when its device is known.
//!
//! refused: E0599: no method named `create_queue_pair` found for struct `Id` in the current scope

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::rdma::{
    cm::{
        Address,
        Id,
        Prepared,
        WaitLimits, //
    },
    qp::QpInitAttr,
};
use support::Peer;

pub(crate) fn prepare(
    id: Id<Peer>,
    to: &Address,
    patience: WaitLimits<'_>,
    parts: QpInitAttr<Peer>,
) -> Result<Prepared<Peer>> {
    #[cfg(not(misuse))]
    let id = id
        .resolve(None, to, patience)
        .map_err(|error| error.cause.errno())?;
    id.create_queue_pair(parts, Ok(Peer), c"case") //~
}
