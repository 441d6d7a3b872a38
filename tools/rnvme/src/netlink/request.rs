// SPDX-License-Identifier: GPL-2.0

//! A message to the kernel.

use crate::error::Error;
use crate::uapi::{ctrl, ns, Command, VERSION};
use neli::consts::nl::NlmF;
use neli::genl::{AttrTypeBuilder, Genlmsghdr, GenlmsghdrBuilder, Nlattr, NlattrBuilder};
use neli::nl::{NlPayload, Nlmsghdr, NlmsghdrBuilder};
use neli::types::{Buffer, GenlBuffer};
use neli::{Size, ToBytes};

/// A generic netlink message with its netlink header.
pub(super) type Message = Nlmsghdr<u16, Genlmsghdr<u8, u16>>;

/// Bytes of the netlink and the generic netlink headers.
const HEADERS: usize = 16 + 4;

/// A request, attribute by attribute.
pub(super) struct Request {
    command: u8,
    version: u8,
    dump: bool,
    name: fn(u16) -> Option<&'static str>,
    attributes: Vec<Nlattr<u16, Buffer>>,
}

impl Request {
    /// A request to this family.
    pub(super) fn new(command: Command) -> Self {
        let name = match command {
            Command::NsGet => ns::name,
            _ => ctrl::name,
        };
        Self::raw(command as u8, VERSION, name)
    }

    /// A request to any family; `name` names its attributes.
    pub(super) fn raw(command: u8, version: u8, name: fn(u16) -> Option<&'static str>) -> Self {
        Self {
            command,
            version,
            dump: false,
            name,
            attributes: Vec::new(),
        }
    }

    /// Ask for every object.
    pub(super) fn dump(self) -> Self {
        Self { dump: true, ..self }
    }

    /// Add an attribute. A string gets its NUL.
    pub(super) fn with(mut self, id: u16, value: impl Size + ToBytes) -> Result<Self, Error> {
        let kind = AttrTypeBuilder::default().nla_type(id).build();
        let attribute = NlattrBuilder::default()
            .nla_type(kind.map_err(unencodable)?)
            .nla_payload(value)
            .build()
            .map_err(unencodable)?;
        self.attributes.push(attribute);
        Ok(self)
    }

    /// Add an attribute if there is a value for it.
    pub(super) fn with_some(
        self,
        id: u16,
        value: Option<impl Size + ToBytes>,
    ) -> Result<Self, Error> {
        match value {
            Some(value) => self.with(id, value),
            None => Ok(self),
        }
    }

    /// The message to send to `family`.
    pub(super) fn message(&self, family: u16, sequence: u32) -> Result<Message, Error> {
        let attributes: GenlBuffer<u16, Buffer> = self.attributes.iter().cloned().collect();
        let payload = GenlmsghdrBuilder::default()
            .cmd(self.command)
            .version(self.version)
            .attrs(attributes)
            .build()
            .map_err(unencodable)?;
        let answer = if self.dump { NlmF::DUMP } else { NlmF::ACK };
        NlmsghdrBuilder::default()
            .nl_type(family)
            .nl_flags(NlmF::REQUEST | answer)
            .nl_seq(sequence)
            .nl_payload(NlPayload::Payload(payload))
            .build()
            .map_err(unencodable)
    }

    /// Whether it asks for every object.
    pub(super) fn is_dump(&self) -> bool {
        self.dump
    }

    /// The name of an attribute that a request of this kind may carry.
    pub(super) fn attribute_name(&self, id: u16) -> Option<&'static str> {
        (self.name)(id)
    }

    /// The name of the attribute at an offset into the message.
    pub(super) fn attribute_at(&self, offset: usize) -> Option<&'static str> {
        let mut start = HEADERS;
        for attribute in &self.attributes {
            let end = start + attribute.padded_size();
            if (start..end).contains(&offset) {
                return self.attribute_name(*attribute.nla_type().nla_type());
            }
            start = end;
        }
        None
    }
}

fn unencodable(error: impl std::fmt::Display) -> Error {
    Error::failed(format!("cannot encode the request: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn wire(request: &Request) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let message = request.message(0x1234, 7).unwrap();
        message.to_bytes(&mut bytes).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn a_message_is_laid_out_as_the_kernel_reads_it() {
        let request = Request::new(Command::Connect)
            .with(ctrl::TRADDR, "10.0.0.9")
            .unwrap()
            .with(ctrl::TRSVCID, 4420u16)
            .unwrap()
            .with_some(ctrl::TOS, None::<u8>)
            .unwrap()
            .with(ctrl::DUPLICATE_CONNECT, ())
            .unwrap();
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
        expected[0] = expected.len() as u8;
        assert_eq!(wire(&request), expected);
    }

    #[test]
    fn a_dump_asks_for_all() {
        let bytes = wire(&Request::new(Command::NsGet).dump());
        assert_eq!(bytes[6..8], 0x301u16.to_ne_bytes());
        assert_eq!(bytes.len(), HEADERS);
    }

    #[test]
    fn offsets_find_their_attribute() {
        let request = Request::new(Command::NsGet)
            .with(ns::CTRL_ID, 0u32)
            .unwrap()
            .with(ns::NSID, 1u32)
            .unwrap();
        assert_eq!(request.attribute_at(HEADERS), Some("ctrl-id"));
        assert_eq!(request.attribute_at(HEADERS + 8), Some("nsid"));
        assert_eq!(request.attribute_at(HEADERS + 16), None);
        assert_eq!(request.attribute_at(0), None);
    }
}
