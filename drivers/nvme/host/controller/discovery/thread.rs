// SPDX-License-Identifier: GPL-2.0

//! The thread of a discovery.

use super::{
    super::setup,
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

/// The thread of a discovery.
pub(crate) struct DiscoveryThread<'a> {
    discovery: &'a Discovery,
}

impl<'a> DiscoveryThread<'a> {
    /// The thread of `discovery`, for a kernel thread to run.
    pub(crate) fn new(discovery: &'a Discovery) -> Self {
        Self { discovery }
    }

    /// Connects, reads the log, or follows it if the discovery is persistent, and disconnects.
    /// Sleeps.
    pub(crate) fn run(&self) {
        let discovery = self.discovery;
        let controller = &*discovery.controller;
        let last = match discovery.persistent {
            Some(longest) => Err(LogFollower::new(discovery).run(longest)),
            None => self.read(),
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
    fn read(&self) -> Result<Log, CtrlError> {
        let controller = &*self.discovery.controller;
        let deadline = Deadline::after(controller.settings().connect_timeout);
        let (queue, configuration) = setup::connect_admin(controller, deadline)?;
        let log = Log::read(&controller.admin(&queue, deadline))?;
        let admin = controller.admin(&queue, Deadline::after(SHUTDOWN));
        // Best effort: the connection ends in any case.
        if let Err(error) = admin.shut_down(configuration) {
            let message = error.message();
            pr_debug!("{}: shutdown: {}\n", controller.name, message);
        }
        Ok(log)
    }
}
