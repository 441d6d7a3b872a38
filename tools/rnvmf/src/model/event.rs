// SPDX-License-Identifier: GPL-2.0

//! What the kernel multicasts.

use crate::error::Error;
use crate::model::controller::Controller;
use crate::model::discovery::DiscoveryLog;
use crate::model::namespace::Namespace;
use crate::nlattr::{Attributes, Malformed};
use crate::uapi::{discovery, Command};

/// What happened to a controller or a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is new.
    Added,
    /// Its state or its error changed, or its size or protection.
    Changed,
    /// It is gone.
    Removed,
}

/// A notification of the `events` group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// About a controller.
    Controller(Change, Box<Controller>),
    /// About a namespace.
    Namespace(Change, Box<Namespace>),
}

impl Event {
    /// Reads a notification; `None` if a newer kernel added it.
    pub(crate) fn read(command: u8, attributes: &Attributes) -> Result<Option<Self>, Malformed> {
        let controller = |change| {
            let controller = Box::new(Controller::read(attributes)?);
            Ok(Some(Self::Controller(change, controller)))
        };
        let namespace = |change| {
            let namespace = Box::new(Namespace::read(attributes)?);
            Ok(Some(Self::Namespace(change, namespace)))
        };
        match Command::from_raw(command) {
            Some(Command::CtrlAddNtf) => controller(Change::Added),
            Some(Command::CtrlChangeNtf) => controller(Change::Changed),
            Some(Command::CtrlDelNtf) => controller(Change::Removed),
            Some(Command::NsAddNtf) => namespace(Change::Added),
            Some(Command::NsChangeNtf) => namespace(Change::Changed),
            Some(Command::NsDelNtf) => namespace(Change::Removed),
            _ => Ok(None),
        }
    }
}

/// A notification about a discovery, which may be another program's.
#[derive(Debug)]
pub(crate) struct DiscoveryEvent {
    /// Number of the discovery.
    pub(crate) id: u32,
    /// Why it failed; without an error there is a log.
    pub(crate) error: Option<Box<Error>>,
}

impl DiscoveryEvent {
    fn read(attributes: &Attributes) -> Result<Self, Malformed> {
        let id = attributes.u32(discovery::DISCOVERY_ID)?;
        let id = attributes.require("discovery-id", id)?;
        let error = DiscoveryLog::read(attributes).err().map(Box::new);
        Ok(Self { id, error })
    }
}

/// What ends a wait.
#[derive(Debug)]
pub(crate) enum WaitResult {
    /// An event came.
    Event(Event),
    /// A discovery has a log, or failed.
    Discovery(DiscoveryEvent),
    /// The kernel dropped events: what is known must be read again.
    EventsLost,
    /// The user asked to stop.
    Interrupted,
    /// The deadline passed.
    Deadline,
}

impl WaitResult {
    /// Reads a notification; `None` if a newer kernel added it.
    pub(crate) fn read(command: u8, attributes: &Attributes) -> Result<Option<Self>, Malformed> {
        if command == Command::DiscoverNtf as u8 {
            return Ok(Some(Self::Discovery(DiscoveryEvent::read(attributes)?)));
        }
        Ok(Event::read(command, attributes)?.map(Self::Event))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nlattr::tests::{attributes, nest, number, text};
    use crate::uapi::{error, ns};

    /// A discovery has a log.
    pub(crate) fn discovery_done(id: u32) -> WaitResult {
        WaitResult::Discovery(DiscoveryEvent { id, error: None })
    }

    /// A discovery failed.
    pub(crate) fn discovery_failed(id: u32, error: Error) -> WaitResult {
        let error = Some(Box::new(error));
        WaitResult::Discovery(DiscoveryEvent { id, error })
    }

    #[test]
    fn what_a_newer_kernel_says_is_passed_over() {
        assert_eq!(Event::read(200, &attributes(vec![])).unwrap(), None);
    }

    #[test]
    fn a_reply_is_no_event() {
        let reply = Command::CtrlGet as u8;
        assert_eq!(Event::read(reply, &attributes(vec![])).unwrap(), None);
    }

    #[test]
    fn reads_a_namespace_event() {
        let message = attributes(vec![
            number(ns::CTRL_ID, 0u32),
            number(ns::NSID, 2u32),
            text(ns::NAME, "rnvmf0n2"),
            number(ns::SIZE, 4096u32),
            number(ns::BLOCK_SIZE, 4096u32),
        ]);
        let event = Event::read(Command::NsDelNtf as u8, &message).unwrap();
        match event {
            Some(Event::Namespace(Change::Removed, namespace)) => assert_eq!(namespace.nsid, 2),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn reads_what_came_of_a_discovery() {
        let read = |more| {
            let id = number(discovery::DISCOVERY_ID, 7u32);
            let message = attributes([vec![id], more].concat());
            match WaitResult::read(Command::DiscoverNtf as u8, &message).unwrap() {
                Some(WaitResult::Discovery(DiscoveryEvent { id: 7, error })) => error,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(read(vec![]), None);
        let failed = nest(
            discovery::ERROR,
            vec![
                number(error::STAGE, 13u32),
                number(error::ERRNO, libc::ENOLINK),
            ],
        );
        let next = |more| read(more).unwrap().ctrl_error.unwrap().next_attempt;
        assert_eq!(next(vec![failed.clone()]), None);
        let soon = number(discovery::NEXT_ATTEMPT, 250u32);
        assert_eq!(next(vec![failed, soon]), Some(250));
    }

    #[test]
    fn a_broken_event_is_an_error() {
        for command in [Command::CtrlAddNtf, Command::DiscoverNtf] {
            assert!(WaitResult::read(command as u8, &attributes(vec![])).is_err());
        }
    }
}
