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

/// Time-out of the shutdown of the discovery controller.
const SHUTDOWN: Msecs = Msecs::from_secs(5);

/// The thread of a discovery.
pub(crate) struct DiscoveryThread<'a> {
    discovery: &'a Discovery,
}

impl<'a> DiscoveryThread<'a> {
    /// Returns the thread function of `discovery`.
    pub(crate) fn new(discovery: &'a Discovery) -> Self {
        Self { discovery }
    }

    /// Runs the discovery until it ends. Sleeps.
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

    /// Connects, reads the log once and disconnects.
    #[inline(never)]
    fn read(&self) -> Result<Log, CtrlError> {
        let controller = &*self.discovery.controller;
        let deadline = Deadline::after(controller.settings().connect_timeout);
        let (queue, configuration) = setup::connect_admin(controller, deadline)?;
        let log = Log::read(&controller.admin(&queue, deadline))?;
        let admin = controller.admin(&queue, Deadline::after(SHUTDOWN));
        // Best effort: the target sees the disconnect in any case.
        if let Err(error) = admin.shut_down(configuration) {
            pr_debug!("{}: shutdown: {}\n", controller.name, error.message());
        }
        Ok(log)
    }
}
