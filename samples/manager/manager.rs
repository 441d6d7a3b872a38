// SPDX-License-Identifier: GPL-2.0

//! What samples share that the connection manager leads to their peer.
//!
//! - [`ear`]: what is heard of a queue pair, and of the peer.

// A sample uses a part of it.
#![allow(dead_code)]

pub(crate) mod ear;

use crate::common::{
    failure::Failure,
    job::Job, //
};
use kernel::prelude::*;
use rrdma::{
    rdma::cm::{
        Address,
        Patience, //
    },
    sync::Msecs,
};

rrdma::parameters! {
    timeout: Number<1, 600000> = 10000, "milliseconds that a step may take";
}

/// For a peer, who may come when it likes.
pub(crate) const EVER: Msecs = Msecs::new(u32::MAX);

/// The address that a parameter is.
pub(crate) fn address(job: &Job, text: &str, port: u32) -> Result<Address, Failure> {
    let port = u16::try_from(port).unwrap_or_default();
    Address::parse(job.namespace(), text, port)
        .map_err(|_| Failure::new("address", fmt!("{text} is none")))
}

/// How long a step may take.
pub(crate) fn limit() -> Msecs {
    Msecs::new(parameters::timeout.get())
}

/// How long connecting, and all that is like it, may take.
pub(crate) fn patience(cancelled: &dyn Fn() -> bool) -> Patience<'_> {
    Patience::new(limit(), cancelled)
}
