// SPDX-License-Identifier: GPL-2.0

//! Notifications of the kernel, and what else ends a wait for them.

use crate::error::Error;
use crate::model::controller::Controller;
use crate::model::namespace::Namespace;

/// What happened to a controller or a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It was added.
    Added,
    /// The state or the error of the controller changed, or the size or write protection of the
    /// namespace.
    Changed,
    /// It was removed.
    Removed,
}

/// A change of a controller or a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Of a controller.
    Controller(Change, Box<Controller>),
    /// Of a namespace.
    Namespace(Change, Box<Namespace>),
}

/// The result of a discovery, which may be another program's.
#[derive(Debug)]
pub(crate) struct DiscoveryEvent {
    /// Number of the discovery.
    pub(crate) id: u32,
    /// Why it failed; without an error there is a log.
    pub(crate) error: Option<Box<Error>>,
}

/// What ends a wait.
#[derive(Debug)]
pub(crate) enum WaitResult {
    /// A controller or a namespace changed.
    Event(Event),
    /// A discovery has a log, or failed.
    Discovery(DiscoveryEvent),
    /// The kernel dropped notifications: read all state again.
    EventsLost,
    /// A signal asks the program to stop.
    Interrupted,
    /// The deadline passed.
    Deadline,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A discovery has a log.
    pub(crate) fn discovery_done(id: u32) -> WaitResult {
        WaitResult::Discovery(DiscoveryEvent { id, error: None })
    }

    /// A discovery failed.
    pub(crate) fn discovery_failed(id: u32, error: Error) -> WaitResult {
        let error = Some(Box::new(error));
        WaitResult::Discovery(DiscoveryEvent { id, error })
    }
}
