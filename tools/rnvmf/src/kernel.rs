// SPDX-License-Identifier: GPL-2.0

//! The operations and notifications of the netlink family, as a trait that tests mock.

use crate::error::Error;
use crate::model::controller::Controller;
use crate::model::discovery::DiscoveryLog;
use crate::model::event::WaitResult;
use crate::model::namespace::Namespace;
use crate::model::options::{ConnectArgs, NewController, PersistentArgs, Settings, Switch, Target};
use crate::model::stats::QueueStats;
use std::time::Instant;

/// Result of a disconnect of a controller without open disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disconnect {
    /// The removal has started.
    Started,
    /// A disk is open, so the controller stays.
    InUse,
}

/// Operations and notifications of the family. A number identifies a controller or a discovery.
pub(crate) trait Kernel {
    /// Starts to connect a controller. Events report the end.
    fn connect(&mut self, args: &ConnectArgs) -> Result<NewController, Error>;
    /// Starts to disconnect a controller. The error status is `NotFound` if there is no such
    /// controller.
    fn disconnect(&mut self, id: u32) -> Result<(), Error>;
    /// Starts to disconnect a controller, unless a disk of it is open. From then on nobody can open
    /// one. Errors are as for `disconnect`.
    fn disconnect_unused(&mut self, id: u32) -> Result<Disconnect, Error>;
    /// Starts to reset a controller. On return its state is no longer live, and its error is reset.
    fn reset(&mut self, id: u32) -> Result<(), Error>;
    /// Starts a namespace scan and returns its number. On return the error of the controller is
    /// reset.
    fn rescan(&mut self, id: u32) -> Result<u32, Error>;
    /// Changes settings of a controller.
    fn set(&mut self, id: u32, settings: &Settings) -> Result<(), Error>;
    /// Reads a controller; `None` if there is no such controller.
    fn controller(&mut self, id: u32) -> Result<Option<Controller>, Error>;
    /// Reads all controllers, sorted by name.
    fn controllers(&mut self) -> Result<Vec<Controller>, Error>;
    /// Reads the namespaces of all controllers.
    fn namespaces(&mut self) -> Result<Vec<Namespace>, Error>;
    /// Starts a discovery and returns its number. A persistent discovery lasts until it is
    /// cancelled.
    fn discover(
        &mut self,
        target: &Target,
        persistent: Option<PersistentArgs>,
    ) -> Result<u32, Error>;
    /// Reads the log of a discovery; `None` while the discovery is under way.
    fn discovery_log(&mut self, id: u32) -> Result<Option<DiscoveryLog>, Error>;
    /// Cancels a discovery.
    fn cancel_discovery(&mut self, id: u32);
    /// Reads the statistics of the queues of one controller, or of all controllers.
    fn stats(&mut self, id: Option<u32>) -> Result<Vec<QueueStats>, Error>;
    /// Starts or stops measuring command latency.
    fn set_latency(&mut self, id: u32, switch: Switch) -> Result<(), Error>;
    /// Subscribes to events and stop signals, which are queued for `wait`.
    fn subscribe(&mut self) -> Result<(), Error>;
    /// Waits for an event, a stop signal or the deadline.
    fn wait(&mut self, deadline: Option<Instant>) -> Result<WaitResult, Error>;
}

#[cfg(test)]
pub(crate) mod mock;
