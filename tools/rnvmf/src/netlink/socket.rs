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
mod tests {
    use super::super::message::tests::{data, done, error, raw};
    use super::*;
    use crate::error::Status;
    use crate::nlattr::tests::{number, text};
    use crate::uapi::{ns, Command};
    use netlink_sys::protocols::NETLINK_GENERIC;

    /// Feeds datagrams to `add_reply` as `request` does.
    fn gather(request: &Request, datagrams: &[Vec<u8>]) -> Result<(usize, bool), Error> {
        let mut replies = Vec::new();
        let mut last = false;
        for message in datagrams
            .iter()
            .flat_map(|bytes| split(bytes, request.header_len()).unwrap())
        {
            assert!(!last, "a message after the last");
            last = add_reply(message, request, &mut replies)
                .map_err(Error::from)?
                .is_break();
        }
        Ok((replies.len(), last))
    }

    fn namespace(flags: i32) -> Vec<u8> {
        data(flags, Command::NsGet as u8, &[number(ns::NSID, 1u32)])
    }

    #[test]
    fn a_do_ends_with_its_acknowledgement() {
        let request = Request::new(Command::NsGet);
        let noop = raw(libc::NLMSG_NOOP, 0, &[]);
        let datagrams = [noop, namespace(0), error(0, &[], &[])];
        assert_eq!(gather(&request, &datagrams).unwrap(), (1, true));
    }

    #[test]
    fn a_dump_ends_with_done() {
        let request = Request::new(Command::NsGet).dump();
        let first = [namespace(libc::NLM_F_MULTI), namespace(libc::NLM_F_MULTI)].concat();
        assert_eq!(gather(&request, &[first, done(0)]).unwrap(), (2, true));
    }

    #[test]
    fn a_dump_may_fail_at_its_end() {
        let request = Request::new(Command::NsGet).dump();
        let failed = gather(&request, &[done(libc::ENOENT)]).unwrap_err();
        assert_eq!(failed.status, Status::NotFound);
    }

    #[test]
    fn an_error_brings_its_extended_acknowledgement() {
        let request = Request::new(Command::NsGet).with(ns::NSID, 0u32);
        let extack = [text(1, "too small"), number(2, 20u32)];
        let echo = request.message(0x1234, 1);
        let datagram = error(libc::ERANGE, &echo[16..], &extack);
        let failed = gather(&request, &[datagram]).unwrap_err();
        assert_eq!(failed.message, "too small (attribute nsid)");
    }

    // Every Linux kernel has the family that describes families.

    const CTRL: u16 = libc::GENL_ID_CTRL as u16;
    const GETFAMILY: u8 = libc::CTRL_CMD_GETFAMILY as u8;
    const FAMILY_ID: u16 = libc::CTRL_ATTR_FAMILY_ID as u16;
    const FAMILY_NAME: u16 = libc::CTRL_ATTR_FAMILY_NAME as u16;

    fn family(name: &str) -> Result<Vec<Payload>, RequestError> {
        let request =
            Request::generic(GETFAMILY, 2, |_| Some("family-name")).with(FAMILY_NAME, name);
        Socket::open(NETLINK_GENERIC)?.request(CTRL, &request)
    }

    #[test]
    fn the_kernel_answers_a_do() {
        let replies = family("nlctrl").map_err(Error::from).unwrap();
        assert_eq!(replies.len(), 1);
        assert_eq!(replies[0].attributes.u16(FAMILY_ID), Ok(Some(CTRL)));
    }

    #[test]
    fn the_kernel_answers_a_dump() {
        let request = Request::generic(GETFAMILY, 2, |_| None).dump();
        let mut socket = Socket::open(NETLINK_GENERIC).unwrap();
        // Twice, for the second answer must not be taken for the first.
        for _ in 0..2 {
            let replies = socket.request(CTRL, &request).map_err(Error::from).unwrap();
            let name = |reply: &Payload| reply.attributes.string(FAMILY_NAME);
            let nlctrl = Ok(Some("nlctrl".to_owned()));
            assert!(replies.iter().any(|reply| name(reply) == nlctrl));
        }
    }

    #[test]
    fn the_kernel_refuses() {
        let Err(RequestError::Rejected(nl_error)) = family("no-such") else {
            panic!("not refused");
        };
        assert_eq!(nl_error.errno(), libc::ENOENT);
        // Longer than the policy allows: the kernel points at the attribute.
        let failed = family(&"x".repeat(100)).map_err(Error::from).err();
        let message = failed.unwrap().message;
        assert!(message.ends_with("(attribute family-name)"), "{message}");
    }
}
