// SPDX-License-Identifier: GPL-2.0

//! The numbers that the kernel gave to the family and its multicast group.

use super::attributes::Attributes;
use super::request::Request;
use super::socket::{Socket, Trouble};
use crate::error::{Error, Status};
use crate::uapi::{FAMILY, GROUP_EVENTS};
use neli::consts::genl::{CtrlAttr, CtrlAttrMcastGrp, CtrlCmd};
use neli::consts::nl::GenlId;

const ENOENT: i32 = 2;

/// Version of the controller of generic netlink.
const CONTROLLER_VERSION: u8 = 2;

/// The numbers of the family.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Family {
    /// Message type of the family.
    pub(super) id: u16,
    /// Multicast group of events.
    pub(super) events: u32,
}

impl Family {
    /// Ask the kernel, which may load the module for it.
    pub(super) fn resolve(socket: &mut Socket) -> Result<Self, Error> {
        let request = Request::raw(CtrlCmd::Getfamily.into(), CONTROLLER_VERSION, |_| None)
            .with(CtrlAttr::FamilyName.into(), FAMILY)?;
        match socket.ask(GenlId::Ctrl.into(), &request) {
            Ok(replies) => match replies.first() {
                Some(reply) => Self::read(&reply.attributes),
                None => Err(Error::failed(
                    "the kernel did not describe the family rnvme",
                )),
            },
            Err(Trouble::Refused(refusal)) if refusal.errno() == ENOENT => Err(Error::new(
                Status::NoModule,
                "the rnvme module is not loaded: modprobe rnvme",
            )),
            Err(trouble) => Err(trouble.into()),
        }
    }

    fn read(attributes: &Attributes) -> Result<Self, Error> {
        let id = attributes.u16(CtrlAttr::FamilyId.into())?;
        let groups = match attributes.nest(CtrlAttr::McastGroups.into())? {
            Some(list) => list.entries()?,
            None => Vec::new(),
        };
        let mut events = None;
        for group in &groups {
            if group.string(CtrlAttrMcastGrp::Name.into())?.as_deref() == Some(GROUP_EVENTS) {
                events = group.u32(CtrlAttrMcastGrp::Id.into())?;
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
    use super::super::attributes::tests::{attributes, nest, number, text};
    use super::*;

    fn group(name: &str, id: u32) -> Vec<neli::genl::Nlattr<u16, neli::types::Buffer>> {
        vec![
            number(CtrlAttrMcastGrp::Id.into(), id),
            text(CtrlAttrMcastGrp::Name.into(), name),
        ]
    }

    #[test]
    fn finds_the_group_by_name() {
        let reply = attributes(vec![
            text(CtrlAttr::FamilyName.into(), "rnvme"),
            number(CtrlAttr::FamilyId.into(), 37u16),
            nest(
                CtrlAttr::McastGroups.into(),
                vec![nest(1, group("other", 4)), nest(2, group("events", 5))],
            ),
        ]);
        let family = Family::read(&reply).unwrap();
        assert_eq!(family, Family { id: 37, events: 5 });
    }

    #[test]
    fn a_family_without_events_is_refused() {
        let reply = attributes(vec![number(CtrlAttr::FamilyId.into(), 37u16)]);
        assert_eq!(
            Family::read(&reply).unwrap_err().message,
            "the kernel left out the attribute mcast-groups"
        );
    }
}
