// SPDX-License-Identifier: GPL-2.0

//! Resolves the family: queries nlctrl, the family that describes families, for its numbers.

use super::codec::find;
use super::message::Message;
use super::socket::Socket;
use crate::error::{Error, Status};
use crate::uapi::{self, FAMILY_CSTR, GROUP_EVENTS_CSTR};
use netlink_packet_core::{parse_u16, parse_u32, NlasIterator, NLM_F_ACK};
use serde_json::json;

/// Number of nlctrl.
pub(super) const NLCTRL: u16 = libc::GENL_ID_CTRL as u16;

/// Multicast group `notify` of nlctrl, which reports new and removed families. The first group of
/// the first family has the number of the family.
pub(super) const NLCTRL_NOTIFY: u32 = libc::GENL_ID_CTRL as u32;

/// Attribute of nlctrl with the name of a family.
const FAMILY_NAME: u16 = libc::CTRL_ATTR_FAMILY_NAME as u16;

/// Request of nlctrl for a family.
pub(super) const GET_FAMILY: uapi::Request = uapi::Request {
    command: libc::CTRL_CMD_GETFAMILY as u8,
    admin: false,
    attributes: &[uapi::Attribute {
        id: FAMILY_NAME,
        name: "family-name",
        kind: uapi::Kind::Str(usize::MAX),
    }],
    set: &[],
};

/// The numbers of the family.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Family {
    /// Number of the family, which is the type of its messages.
    pub(super) id: u16,
    /// Number of its multicast group.
    pub(super) events: u32,
}

impl Family {
    /// Queries nlctrl. The query makes the kernel load the module.
    pub(super) fn resolve() -> Result<Self, Error> {
        let name = json!({"family_name": uapi::FAMILY});
        match Socket::open(NLCTRL)?.exchange(&GET_FAMILY, NLM_F_ACK, &name) {
            Ok(replies) => (replies.first().and_then(|reply| Self::read(reply)))
                .ok_or_else(|| Error::malformed("description of the family rnvmf")),
            Err(error) if error.status == Status::NotFound => Err(Error::new(
                Status::NoModule,
                "the rnvmf module is not loaded: modprobe rnvmf",
            )),
            Err(error) => Err(error),
        }
    }

    fn read(from: &[u8]) -> Option<Self> {
        let groups = find(from, libc::CTRL_ATTR_MCAST_GROUPS as u16)?;
        let group = NlasIterator::new(&groups[..]).flatten().find(|group| {
            let name = find(group.value(), libc::CTRL_ATTR_MCAST_GRP_NAME as u16);
            name.as_deref() == Some(GROUP_EVENTS_CSTR.to_bytes_with_nul())
        })?;
        Some(Self {
            id: parse_u16(&find(from, libc::CTRL_ATTR_FAMILY_ID as u16)?).ok()?,
            events: parse_u32(&find(group.value(), libc::CTRL_ATTR_MCAST_GRP_ID as u16)?).ok()?,
        })
    }
}

/// Whether a message of nlctrl reports that the family was removed.
pub(super) fn is_removed(message: &Message) -> bool {
    message.command == libc::CTRL_CMD_DELFAMILY as u8
        && find(&message.attributes, FAMILY_NAME).as_deref()
            == Some(FAMILY_CSTR.to_bytes_with_nul())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::tests::{bytes, nest, number, text};

    fn group(name: &str, id: u32) -> [Vec<u8>; 2] {
        [
            number(libc::CTRL_ATTR_MCAST_GRP_ID as u16, id),
            text(libc::CTRL_ATTR_MCAST_GRP_NAME as u16, name),
        ]
    }

    #[test]
    fn finds_the_group_by_name() {
        let reply = [
            text(FAMILY_NAME, "rnvmf"),
            bytes(libc::CTRL_ATTR_FAMILY_ID as u16, &37u16.to_ne_bytes()),
            nest(
                libc::CTRL_ATTR_MCAST_GROUPS as u16,
                &[nest(1, &group("other", 4)), nest(2, &group("events", 5))],
            ),
        ];
        let family = Family::read(&reply.concat()).unwrap();
        assert_eq!(family, Family { id: 37, events: 5 });
    }

    #[test]
    fn a_family_without_events_is_refused() {
        let reply = bytes(libc::CTRL_ATTR_FAMILY_ID as u16, &37u16.to_ne_bytes());
        assert_eq!(Family::read(&reply), None);
    }
}
