// SPDX-License-Identifier: GPL-2.0

//! Sockets: send requests and collect their replies.

use super::codec::decode;
use super::message::{split, Message, Request};
use super::rejection::rejection;
use crate::error::Error;
use crate::uapi;
use netlink_packet_core::{
    DoneMessage, ErrorMessage, NetlinkHeader, NetlinkMessage, NetlinkPayload, NLM_F_ACK,
    NLM_F_DUMP, NLM_F_REQUEST,
};
use netlink_sys::protocols::NETLINK_GENERIC;
use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::Value;
use std::io;

/// Opens a socket of a netlink protocol, with extended acknowledgements.
pub(super) fn open(protocol: isize) -> Result<netlink_sys::Socket, Error> {
    let open = || -> io::Result<netlink_sys::Socket> {
        let mut socket = netlink_sys::Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.set_ext_ack(true)?;
        Ok(socket)
    };
    open().map_err(|error| Error::from(error).context("netlink socket"))
}

/// A socket for requests to a generic netlink family.
pub(super) struct Socket {
    inner: netlink_sys::Socket,
    family: u16,
    sequence: u32,
}

impl Socket {
    /// Opens a socket.
    pub(super) fn open(family: u16) -> Result<Self, Error> {
        Ok(Self {
            inner: open(NETLINK_GENERIC)?,
            family,
            sequence: 0,
        })
    }

    /// Sends a do request and returns its reply, or `()` if the operation has no reply.
    pub(super) fn request<T: DeserializeOwned>(
        &mut self,
        spec: &'static uapi::Request,
        args: &impl Serialize,
    ) -> Result<T, Error> {
        match self.exchange(spec, NLM_F_ACK, args)?.first() {
            Some(reply) => decode(reply, spec.set),
            None => serde_json::from_value(Value::Null).map_err(Error::malformed),
        }
    }

    /// Sends a dump request and returns its replies.
    pub(super) fn dump<T: DeserializeOwned>(
        &mut self,
        spec: &'static uapi::Request,
        args: &impl Serialize,
    ) -> Result<Vec<T>, Error> {
        let replies = self.exchange(spec, NLM_F_DUMP, args)?;
        replies
            .iter()
            .map(|reply| decode(reply, spec.set))
            .collect()
    }

    /// Sends a request and returns the encoded attributes of each reply.
    pub(super) fn exchange(
        &mut self,
        spec: &'static uapi::Request,
        flags: u16,
        args: &impl Serialize,
    ) -> Result<Vec<Vec<u8>>, Error> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.message_type = self.family;
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let request = Request::new(spec, header, args)?;
        self.inner.send(&request.bytes, 0)?;
        let mut replies = Vec::new();
        loop {
            let (datagram, _) = self.inner.recv_from_full()?;
            for message in split(&datagram)? {
                let ours = message.header.sequence_number == self.sequence;
                if ours && add_reply(message, &request, &mut replies)? {
                    return Ok(replies);
                }
            }
        }
    }
}

/// Adds a message to the replies. Returns true for the last message, and the error of a rejected
/// request.
fn add_reply(
    message: NetlinkMessage<Message>,
    request: &Request,
    replies: &mut Vec<Vec<u8>>,
) -> Result<bool, Error> {
    match message.payload {
        NetlinkPayload::InnerMessage(reply) => replies.push(reply.attributes),
        NetlinkPayload::Error(ErrorMessage { code: None, .. })
        | NetlinkPayload::Done(DoneMessage { code: 0, .. }) => return Ok(true),
        NetlinkPayload::Error(error) => {
            // The kernel repeats the request before the extended acknowledgement.
            let extack = error.header.get(request.bytes.len()..).unwrap_or_default();
            return Err(rejection(error.raw_code(), extack, request));
        }
        NetlinkPayload::Done(done) => {
            return Err(rejection(done.code, &done.extended_ack, request))
        }
        _ => (),
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
