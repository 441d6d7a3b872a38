// SPDX-License-Identifier: GPL-2.0

//! The operations and events of the netlink family, as verbs use them.

use crate::error::Error;
use crate::model::controller::Controller;
use crate::model::discovery::DiscoveryLog;
use crate::model::event::WaitResult;
use crate::model::namespace::Namespace;
use crate::model::options::{ConnectArgs, NewController, PersistentArgs, Settings, Switch, Target};
use crate::model::stats::QueueStats;
use std::time::Instant;

/// The operations of the family and its events.
pub(crate) trait Kernel {
    /// Starts to connect.
    fn connect(&mut self, args: &ConnectArgs) -> Result<NewController, Error>;
    /// Starts to disconnect; the status is `NotFound` where the controller is gone already.
    fn disconnect(&mut self, id: u32) -> Result<(), Error>;
    /// Starts to reset. On return the state is no longer live, and the controller has no error.
    fn reset(&mut self, id: u32) -> Result<(), Error>;
    /// Starts a scan of the namespaces and returns its number. On return the controller has no
    /// error.
    fn rescan(&mut self, id: u32) -> Result<u32, Error>;
    /// Changes settings.
    fn set(&mut self, id: u32, settings: &Settings) -> Result<(), Error>;
    /// Reads a controller; `None` if there is none with this number.
    fn controller(&mut self, id: u32) -> Result<Option<Controller>, Error>;
    /// Reads all controllers, in the order of their names.
    fn controllers(&mut self) -> Result<Vec<Controller>, Error>;
    /// Reads the namespaces of all controllers.
    fn namespaces(&mut self) -> Result<Vec<Namespace>, Error>;
    /// Starts a discovery, and returns its number. A persistent one goes on until it is cancelled.
    fn discover(
        &mut self,
        target: &Target,
        persistent: Option<PersistentArgs>,
    ) -> Result<u32, Error>;
    /// Reads the log of a discovery; `None` while there is none yet.
    fn discovery_log(&mut self, id: u32) -> Result<Option<DiscoveryLog>, Error>;
    /// Cancels a discovery.
    fn cancel_discovery(&mut self, id: u32);
    /// Reads the statistics of the queues of one controller, or of all.
    fn stats(&mut self, id: Option<u32>) -> Result<Vec<QueueStats>, Error>;
    /// Switches the measurement of command latency.
    fn set_latency(&mut self, id: u32, switch: Switch) -> Result<(), Error>;
    /// Starts to queue events and stop signals for `wait`.
    fn subscribe(&mut self) -> Result<(), Error>;
    /// Waits for an event or a stop signal, until the deadline if there is one.
    fn wait(&mut self, deadline: Option<Instant>) -> Result<WaitResult, Error>;
}

#[cfg(test)]
pub(crate) mod mock;
