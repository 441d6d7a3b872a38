// SPDX-License-Identifier: GPL-2.0

//! The thread of a discovery.

use super::{
    super::{setup, Controller},
    persistent::LogFollower,
    Discovery,
    Log, //
};
use crate::ctrl_error::CtrlError;
use kernel::prelude::*;
use rrdma::{
    errno,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// How long the target's controller may take to shut down.
const SHUTDOWN: Msecs = Msecs::from_secs(5);

/// Connects, reads the log, or follows it if the discovery is persistent, and disconnects. Sleeps.
pub(crate) fn run(discovery: &Discovery) {
    let controller = &*discovery.controller;
    let last = match discovery.persistent {
        Some(longest) => Err(LogFollower::new(discovery).run(longest)),
        None => read(controller),
    };
    let last = last.map_err(|error| {
        if !controller.is_deleting() {
            return error;
        }
        let why = format_args!("the discovery was cancelled");
        CtrlError::new(error.stage, errno::ECANCELED, why)
    });
    controller.release_device();
    discovery.finish(last.into());
}

/// Reads the log once.
#[inline(never)]
fn read(controller: &Controller) -> Result<Log, CtrlError> {
    let deadline = Deadline::after(controller.settings().connect_timeout);
    let (queue, configuration) = setup::connect_admin(controller, deadline)?;
    let admin = |deadline| controller.admin(&queue, deadline);
    let log = Log::read(&admin(deadline))?;
    // Best effort: the connection ends in any case.
    if let Err(error) = admin(Deadline::after(SHUTDOWN)).shut_down(configuration) {
        let message = error.message();
        pr_debug!("{}: shutdown: {}\n", controller.name, message);
    }
    Ok(log)
}
