// SPDX-License-Identifier: GPL-2.0

//! Messages.

use super::codec::encode;
use crate::error::Error;
use crate::uapi::{self, VERSION};
use netlink_packet_core::{
    DecodeError, Emitable, NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NlaBuffer,
};
use serde::Serialize;

/// An encoded request.
pub(super) struct Request {
    spec: &'static uapi::Request,
    /// The message.
    pub(super) bytes: Vec<u8>,
}

impl Request {
    /// Encodes a request with `args`, an object as in [`codec`](super::codec). Sets the length in
    /// the header.
    pub(super) fn new(
        spec: &'static uapi::Request,
        mut header: NetlinkHeader,
        args: &impl Serialize,
    ) -> Result<Self, Error> {
        let args = serde_json::to_value(args);
        let attributes = args.and_then(|args| encode(&args, spec.attributes));
        let attributes = attributes.map_err(|error| Error::failed(error.to_string()))?;
        let mut bytes = vec![0; header.buffer_len()];
        // struct genlmsghdr
        bytes.extend([spec.command, VERSION, 0, 0]);
        bytes.extend(attributes);
        header.length = bytes.len() as u32;
        header.emit(&mut bytes);
        Ok(Self { spec, bytes })
    }

    /// Returns the name of an attribute of this request.
    pub(super) fn attribute_name(&self, id: u16) -> Option<&'static str> {
        let attribute = self.spec.attributes.iter().find(|each| each.id == id)?;
        Some(attribute.name)
    }

    /// Returns the name of the attribute at an offset of the message.
    pub(super) fn attribute_at(&self, offset: usize) -> Option<&'static str> {
        let attribute = NlaBuffer::new_checked(self.bytes.get(offset..)?).ok()?;
        self.attribute_name(attribute.kind())
    }
}

/// A reply or a notification.
#[derive(Debug)]
pub(super) struct Message {
    /// The message type, which is the number of a family.
    pub(super) family: u16,
    /// The command.
    pub(super) command: u8,
    /// The attributes, encoded.
    pub(super) attributes: Vec<u8>,
}

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        // struct genlmsghdr: command, version, reserved
        let [command, _, _, _, attributes @ ..] = payload else {
            return Err("no generic netlink header".into());
        };
        Ok(Self {
            family: header.message_type,
            command: *command,
            attributes: attributes.to_vec(),
        })
    }
}

/// Splits a datagram into its messages.
pub(super) fn split(mut bytes: &[u8]) -> Result<Vec<NetlinkMessage<Message>>, Error> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let message = NetlinkMessage::<Message>::deserialize(bytes).map_err(Error::malformed)?;
        let aligned = (message.header.length as usize).next_multiple_of(4);
        bytes = bytes.get(aligned..).unwrap_or_default();
        messages.push(message);
    }
    Ok(messages)
}

#[cfg(test)]
pub(super) mod tests;
