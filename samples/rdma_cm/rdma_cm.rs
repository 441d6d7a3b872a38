// SPDX-License-Identifier: GPL-2.0

//! Modules shared by samples that use the connection manager.
//!
//! - [`event_sink`]: context of a queue pair that stores its events for the task.

// No sample uses everything.
#![allow(dead_code)]

pub(crate) mod event_sink;

use crate::common::{
    step_error::StepError,
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
    timeout: Number<1, 600000> = 10000, "timeout of a step in ms; default 10000";
}

/// No limit: peers may connect at any time.
pub(crate) const EVER: Msecs = Msecs::new(u32::MAX);

/// Parses the address in a module parameter.
pub(crate) fn address(task: &SampleTask, text: &str, port: u32) -> Result<Address, StepError> {
    let port = u16::try_from(port).unwrap_or_default();
    Address::parse(task.namespace(), text, port)
        .map_err(|_| StepError::new("address", fmt!("{text} is not an IP address")))
}

/// Time limit of a step, from the parameter.
pub(crate) fn limit() -> Msecs {
    Msecs::new(parameters::timeout.get())
}

/// Limits of a connect and of similar operations with several steps.
pub(crate) fn patience(cancelled: &dyn Fn() -> bool) -> WaitLimits<'_> {
    WaitLimits::new(limit(), cancelled)
}
