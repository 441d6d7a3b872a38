// SPDX-License-Identifier: GPL-2.0

//! A netlink socket: sends requests, receives whole messages.

use super::message::{split, Ack, Message, MessageBody, Payload};
use super::nl_error::NlError;
use super::request::Request;
use crate::error::Error;
use std::io;
use std::ops::ControlFlow;

/// The largest datagram that the kernel makes for a dump.
const BUFFER_SIZE: usize = 32 * 1024;

/// How a request failed.
pub(crate) enum RequestError {
    /// The kernel rejected it.
    Rejected(NlError),
    /// It was not sent, or its answer was not received or not understood.
    Other(Error),
}

impl From<Error> for RequestError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Rejected(nl_error) => nl_error.into(),
            RequestError::Other(error) => error,
        }
    }
}

/// How receiving failed.
pub(super) enum ReceiveError {
    /// The socket's error. `ENOBUFS` means that the kernel dropped messages.
    Socket(io::Error),
    /// A datagram does not keep to netlink's format.
    Malformed(Error),
}

impl From<ReceiveError> for Error {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Socket(error) => error.into(),
            ReceiveError::Malformed(error) => error,
        }
    }
}

/// A socket.
pub(crate) struct Socket {
    inner: netlink_sys::Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Socket {
    /// Opens a socket of a netlink protocol, with extended acknowledgements.
    pub(crate) fn open(protocol: isize) -> Result<Self, Error> {
        let open = || -> io::Result<netlink_sys::Socket> {
            let mut socket = netlink_sys::Socket::new(protocol)?;
            socket.bind_auto()?;
            socket.set_ext_ack(true)?;
            Ok(socket)
        };
        Ok(Self {
            inner: open().map_err(|error| Error::from(error).context("netlink socket"))?,
            buffer: Vec::with_capacity(BUFFER_SIZE),
            sequence: 0,
        })
    }

    /// Joins a multicast group.
    pub(super) fn add_membership(&mut self, group: u32) -> Result<(), Error> {
        let joined = self.inner.add_membership(group);
        joined.map_err(|error| Error::from(error).context("netlink multicast group"))
    }

    /// Sends a request with this message type and returns all of its replies.
    pub(crate) fn request(
        &mut self,
        kind: u16,
        request: &Request,
    ) -> Result<Vec<Payload>, RequestError> {
        self.sequence = self.sequence.wrapping_add(1);
        self.send(&request.message(kind, self.sequence))?;
        let mut replies = Vec::new();
        loop {
            for message in self.receive(request.header_len()).map_err(Error::from)? {
                if message.sequence == self.sequence
                    && add_reply(message, request, &mut replies)?.is_break()
                {
                    return Ok(replies);
                }
            }
        }
    }

    fn send(&self, message: &[u8]) -> Result<(), Error> {
        self.inner.send(message, 0)?;
        Ok(())
    }

    /// Waits for a datagram and returns its messages, whose family header has `header_len` bytes.
    pub(super) fn receive(&mut self, header_len: usize) -> Result<Vec<Message>, ReceiveError> {
        self.read(header_len, 0)
    }

    /// Does not wait: the error is `EAGAIN` if there is no datagram.
    pub(super) fn receive_now(&mut self, header_len: usize) -> Result<Vec<Message>, ReceiveError> {
        self.read(header_len, libc::MSG_DONTWAIT)
    }

    fn read(&mut self, header_len: usize, flags: i32) -> Result<Vec<Message>, ReceiveError> {
        let length = loop {
            self.buffer.clear();
            match self.inner.recv(&mut self.buffer, libc::MSG_TRUNC | flags) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => break other.map_err(ReceiveError::Socket)?,
            }
        };
        let Some(bytes) = self.buffer.get(..length) else {
            let error = Error::failed("the kernel sent a message that is too long");
            return Err(ReceiveError::Malformed(error));
        };
        split(bytes, header_len).map_err(|error| ReceiveError::Malformed(error.into()))
    }
}

/// Adds a message to the replies; breaks at the last one.
fn add_reply(
    message: Message,
    request: &Request,
    replies: &mut Vec<Payload>,
) -> Result<ControlFlow<()>, RequestError> {
    match message.body {
        MessageBody::Payload(payload) => replies.push(payload),
        MessageBody::Ack(Ack { error: 0, .. }) => return Ok(ControlFlow::Break(())),
        MessageBody::Ack(ack) => {
            let nl_error = NlError::read(&ack, request).map_err(Error::from)?;
            return Err(RequestError::Rejected(nl_error));
        }
        MessageBody::Ignored => (),
    }
    Ok(ControlFlow::Continue(()))
}

#[cfg(test)]
mod tests;
