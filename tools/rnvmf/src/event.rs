// SPDX-License-Identifier: GPL-2.0

//! What the kernel multicasts.

use crate::controller::Controller;
use crate::discovery::DiscoveryLog;
use crate::error::Error;
use crate::namespace::Namespace;
use crate::netlink::attributes::{Attributes, Malformed};
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
    /// Read a notification; one that a newer kernel added is none.
    pub(crate) fn read(command: u8, attributes: &Attributes) -> Result<Option<Self>, Malformed> {
        let (change, controller) = match Command::from_raw(command) {
            Some(Command::CtrlAddNtf) => (Change::Added, true),
            Some(Command::CtrlChangeNtf) => (Change::Changed, true),
            Some(Command::CtrlDelNtf) => (Change::Removed, true),
            Some(Command::NsAddNtf) => (Change::Added, false),
            Some(Command::NsChangeNtf) => (Change::Changed, false),
            Some(Command::NsDelNtf) => (Change::Removed, false),
            _ => return Ok(None),
        };
        Ok(Some(if controller {
            Self::Controller(change, Box::new(Controller::read(attributes)?))
        } else {
            Self::Namespace(change, Box::new(Namespace::read(attributes)?))
        }))
    }
}

/// What waiting for an event ends with.
#[derive(Debug)]
pub(crate) enum WaitResult {
    /// An event came.
    Event(Event),
    /// The discovery of this number, which may be another program's, has a log, or failed.
    Discovery(u32, Option<Box<Error>>),
    /// The kernel dropped events: what is known must be read again.
    Lost,
    /// The user asked to stop.
    Interrupted,
    /// The deadline passed.
    Deadline,
}

impl WaitResult {
    /// Read a notification; one that a newer kernel added is none.
    pub(crate) fn read(command: u8, attributes: &Attributes) -> Result<Option<Self>, Malformed> {
        if command == Command::DiscoverNtf as u8 {
            let id = attributes.u32(discovery::DISCOVERY_ID)?;
            let id = attributes.require("discovery-id", id)?;
            let failed = DiscoveryLog::read(attributes).err();
            return Ok(Some(Self::Discovery(id, failed.map(Box::new))));
        }
        Ok(Event::read(command, attributes)?.map(Self::Event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attributes::tests::{attributes, nest, number, text};
    use crate::uapi::{error, ns};

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
                Some(WaitResult::Discovery(7, error)) => error,
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
