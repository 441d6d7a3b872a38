// SPDX-License-Identifier: GPL-2.0

//! Resolves the generic netlink family and its multicast group.

use super::request::Request;
use super::socket::{RequestError, Socket};
use crate::error::{Error, Status};
use crate::nlattr::{Attributes, Malformed};
use crate::uapi::{FAMILY, GROUP_EVENTS};

// nlctrl, the family that describes families, from linux/genetlink.h.
pub(super) const NLCTRL: u16 = libc::GENL_ID_CTRL as u16;
const NLCTRL_VERSION: u8 = 2;
const GET_FAMILY: u8 = libc::CTRL_CMD_GETFAMILY as u8;
const DELETE_FAMILY: u8 = libc::CTRL_CMD_DELFAMILY as u8;
const FAMILY_ID: u16 = libc::CTRL_ATTR_FAMILY_ID as u16;
const FAMILY_NAME: u16 = libc::CTRL_ATTR_FAMILY_NAME as u16;
const GROUPS: u16 = libc::CTRL_ATTR_MCAST_GROUPS as u16;
const GROUP_NAME: u16 = libc::CTRL_ATTR_MCAST_GRP_NAME as u16;
const GROUP_ID: u16 = libc::CTRL_ATTR_MCAST_GRP_ID as u16;

/// nlctrl's multicast group `notify`, which reports new and removed families. The first group of
/// the first family has that family's number.
pub(super) const NLCTRL_NOTIFY: u32 = libc::GENL_ID_CTRL as u32;

/// Whether a message reports that the family `rnvmf` was removed.
pub(super) fn is_family_removed(
    kind: u16,
    command: u8,
    attributes: &Attributes,
) -> Result<bool, Malformed> {
    let is_end = kind == NLCTRL && command == DELETE_FAMILY;
    Ok(is_end && attributes.string(FAMILY_NAME)?.as_deref() == Some(FAMILY))
}

/// A resolved family.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Family {
    /// Message type of the family.
    pub(super) id: u16,
    /// Multicast group of events.
    pub(super) events: u32,
}

impl Family {
    /// Asks the kernel for the family, which loads the module if it is installed.
    pub(super) fn resolve(socket: &mut Socket) -> Result<Self, Error> {
        let request =
            Request::generic(GET_FAMILY, NLCTRL_VERSION, |_| None).with(FAMILY_NAME, FAMILY);
        match socket.request(NLCTRL, &request) {
            Ok(replies) => match replies.first() {
                Some(reply) => Self::read(&reply.attributes),
                None => Err(Error::failed(
                    "the kernel did not describe the family rnvmf",
                )),
            },
            Err(RequestError::Rejected(nl_error)) if nl_error.errno() == libc::ENOENT => {
                Err(Error::new(
                    Status::NoModule,
                    "the rnvmf module is not loaded: modprobe rnvmf",
                ))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read(attributes: &Attributes) -> Result<Self, Error> {
        let id = attributes.u16(FAMILY_ID)?;
        let groups = match attributes.nest(GROUPS)? {
            Some(list) => list.entries()?,
            None => Vec::new(),
        };
        let mut events = None;
        for group in &groups {
            if group.string(GROUP_NAME)?.as_deref() == Some(GROUP_EVENTS) {
                events = group.u32(GROUP_ID)?;
            }
        }
        Ok(Self {
            id: attributes.require("family-id", id)?,
            events: attributes.require("mcast-groups", events)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nlattr::tests::{attributes, nest, number, text};

    fn group(name: &str, id: u32) -> Vec<Vec<u8>> {
        vec![number(GROUP_ID, id), text(GROUP_NAME, name)]
    }

    #[test]
    fn finds_the_group_by_name() {
        let reply = attributes(vec![
            text(FAMILY_NAME, "rnvmf"),
            number(FAMILY_ID, 37u16),
            nest(
                GROUPS,
                vec![nest(1, group("other", 4)), nest(2, group("events", 5))],
            ),
        ]);
        let family = Family::read(&reply).unwrap();
        assert_eq!(family, Family { id: 37, events: 5 });
    }

    #[test]
    fn a_family_without_events_is_refused() {
        let reply = attributes(vec![number(FAMILY_ID, 37u16)]);
        assert_eq!(
            Family::read(&reply).unwrap_err().message,
            "the kernel left out the attribute mcast-groups"
        );
    }
}
