// SPDX-License-Identifier: GPL-2.0

//! A message to the kernel.

use super::message::NETLINK_HEADER;
use crate::nlattr::{align, AttrValue, HEADER};
use crate::uapi::{ctrl, discovery, ns, stats, Command, VERSION};

/// A request, attribute by attribute.
pub(crate) struct Request {
    header: Vec<u8>,
    dump: bool,
    name: fn(u16) -> Option<&'static str>,
    attributes: Vec<u8>,
    /// The numbers of the attributes and where in `attributes` they end.
    ends: Vec<(u16, usize)>,
}

impl Request {
    /// A request to this family.
    pub(super) fn new(command: Command) -> Self {
        let name = match command {
            Command::NsGet => ns::name,
            Command::DiscoverGet => discovery::name,
            Command::StatsGet | Command::StatsSet => stats::name,
            _ => ctrl::name,
        };
        Self::generic(command as u8, VERSION, name)
    }

    /// A request to any family; `name` names its attributes.
    pub(super) fn generic(command: u8, version: u8, name: fn(u16) -> Option<&'static str>) -> Self {
        Self {
            name,
            ..Self::with_header([command, version, 0, 0].into())
        }
    }

    /// A request with the header of a family that is not a generic one.
    pub(crate) fn with_header(header: Vec<u8>) -> Self {
        Self {
            header,
            dump: false,
            name: |_| None,
            attributes: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Asks for every object.
    pub(crate) fn dump(self) -> Self {
        Self { dump: true, ..self }
    }

    /// Adds an attribute.
    pub(crate) fn with(mut self, id: u16, value: impl AttrValue) -> Self {
        let start = self.attributes.len();
        self.attributes.extend([0; HEADER]);
        value.put(&mut self.attributes);
        // The command line and the specification keep every value far below 64 KiB.
        let length = (self.attributes.len() - start) as u16;
        self.attributes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.attributes[start + 2..start + HEADER].copy_from_slice(&id.to_ne_bytes());
        self.attributes.resize(align(self.attributes.len()), 0);
        self.ends.push((id, self.attributes.len()));
        self
    }

    /// Adds an attribute if there is a value for it.
    pub(crate) fn with_some(self, id: u16, value: Option<impl AttrValue>) -> Self {
        match value {
            Some(value) => self.with(id, value),
            None => self,
        }
    }

    /// The message to send to `family`.
    pub(super) fn message(&self, family: u16, sequence: u32) -> Vec<u8> {
        let length = NETLINK_HEADER + self.header.len() + self.attributes.len();
        let answer = if self.dump {
            libc::NLM_F_DUMP
        } else {
            libc::NLM_F_ACK
        };
        let flags = libc::NLM_F_REQUEST | answer;
        let mut bytes = Vec::with_capacity(length);
        (length as u32).put(&mut bytes);
        family.put(&mut bytes);
        (flags as u16).put(&mut bytes);
        sequence.put(&mut bytes);
        0u32.put(&mut bytes);
        bytes.extend(&self.header);
        bytes.extend(&self.attributes);
        bytes
    }

    /// Returns the length of the family's header, which its replies have, too.
    pub(super) fn header_len(&self) -> usize {
        self.header.len()
    }

    /// The name of an attribute that a request of this kind may carry.
    pub(super) fn attribute_name(&self, id: u16) -> Option<&'static str> {
        (self.name)(id)
    }

    /// The name of the attribute at an offset into the message.
    pub(super) fn attribute_at(&self, offset: usize) -> Option<&'static str> {
        let offset = offset.checked_sub(NETLINK_HEADER + self.header.len())?;
        let (id, _) = self.ends.iter().find(|(_, end)| offset < *end)?;
        self.attribute_name(*id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_laid_out_as_the_kernel_reads_it() {
        let request = Request::new(Command::Connect)
            .with(ctrl::TRADDR, "10.0.0.9")
            .with(ctrl::TRSVCID, 4420u16)
            .with_some(ctrl::TOS, None::<u8>)
            .with(ctrl::DUPLICATE_CONNECT, ());
        let mut expected = Vec::new();
        expected.extend(48u32.to_ne_bytes()); // length
        expected.extend(0x1234u16.to_ne_bytes()); // family
        expected.extend(5u16.to_ne_bytes()); // NLM_F_REQUEST | NLM_F_ACK
        expected.extend(7u32.to_ne_bytes()); // sequence
        expected.extend(0u32.to_ne_bytes()); // port
        expected.extend([1, 1, 0, 0]); // connect, version 1
        expected.extend(13u16.to_ne_bytes());
        expected.extend(4u16.to_ne_bytes());
        expected.extend(b"10.0.0.9\0\0\0\0");
        expected.extend(6u16.to_ne_bytes());
        expected.extend(5u16.to_ne_bytes());
        expected.extend(4420u16.to_ne_bytes());
        expected.extend([0, 0]);
        expected.extend(4u16.to_ne_bytes());
        expected.extend(15u16.to_ne_bytes());
        assert_eq!(request.message(0x1234, 7), expected);
    }

    #[test]
    fn a_dump_asks_for_all() {
        let bytes = Request::new(Command::NsGet).dump().message(0x1234, 7);
        assert_eq!(bytes[6..8], 0x301u16.to_ne_bytes());
        assert_eq!(bytes.len(), 20);
    }

    #[test]
    fn offsets_find_their_attribute() {
        let request = Request::new(Command::NsGet)
            .with(ns::CTRL_ID, 0u32)
            .with(ns::NSID, 1u32);
        assert_eq!(request.attribute_at(20), Some("ctrl-id"));
        assert_eq!(request.attribute_at(28), Some("nsid"));
        assert_eq!(request.attribute_at(36), None);
        assert_eq!(request.attribute_at(0), None);
    }
}
