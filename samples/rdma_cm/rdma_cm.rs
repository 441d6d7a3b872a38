// SPDX-License-Identifier: GPL-2.0

//! What samples share that the connection manager leads to their peer.
//!
//! - [`event_sink`]: events of a queue pair, kept for the task.

// A sample uses a part of it.
#![allow(dead_code)]

pub(crate) mod event_sink;

use crate::common::{
    failure::Failure,
    task::SampleTask, //
};
use kernel::prelude::*;
use rrdma::{
    rdma::cm::{
        Address,
        WaitLimits, //
    },
    sync::Msecs,
};

rrdma::parameters! {
    timeout: Number<1, 600000> = 10000, "milliseconds that a step may take";
}

/// For a peer, who may come when it likes.
pub(crate) const EVER: Msecs = Msecs::new(u32::MAX);

/// The address that a parameter is.
pub(crate) fn address(task: &SampleTask, text: &str, port: u32) -> Result<Address, Failure> {
    let port = u16::try_from(port).unwrap_or_default();
    Address::parse(task.namespace(), text, port)
        .map_err(|_| Failure::new("address", fmt!("{text} is none")))
}

/// How long a step may take.
pub(crate) fn limit() -> Msecs {
    Msecs::new(parameters::timeout.get())
}

/// How long connecting, and all that is like it, may take.
pub(crate) fn patience(cancelled: &dyn Fn() -> bool) -> WaitLimits<'_> {
    WaitLimits::new(limit(), cancelled)
}
