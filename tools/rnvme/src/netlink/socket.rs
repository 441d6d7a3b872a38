// SPDX-License-Identifier: GPL-2.0

//! A generic netlink socket: whole messages out and in.

use super::attributes::Attributes;
use super::refusal::Refusal;
use super::request::{Message, Request};
use crate::error::Error;
use neli::consts::socket::{Msg, NlFamily};
use neli::nl::NlPayload;
use neli::socket::NlSocket;
use neli::utils::Groups;
use neli::{FromBytes, Size, ToBytes};
use std::io::{self, Cursor};

/// The largest datagram that the kernel makes for a dump.
const BUFFER: usize = 32 * 1024;

/// A message from the kernel.
pub(super) struct Reply {
    /// Its command.
    pub(super) command: u8,
    /// Its attributes.
    pub(super) attributes: Attributes,
}

/// How a request failed.
pub(super) enum Trouble {
    /// The kernel refused it.
    Refused(Refusal),
    /// It did not get that far.
    Broken(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused(refusal) => refusal.into(),
            Trouble::Broken(error) => error,
        }
    }
}

/// A socket.
pub(super) struct Socket {
    inner: NlSocket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Socket {
    /// Open a socket that gets extended acknowledgements.
    pub(super) fn open() -> Result<Self, Error> {
        let open = || -> io::Result<NlSocket> {
            let socket = NlSocket::connect(NlFamily::Generic, None, Groups::empty())?;
            socket.enable_ext_ack(true)?;
            Ok(socket)
        };
        Ok(Self {
            inner: open().map_err(|error| Error::from(error).during("netlink socket"))?,
            buffer: vec![0; BUFFER],
            sequence: 0,
        })
    }

    /// Join a multicast group.
    pub(super) fn join(&self, group: u32) -> Result<(), Error> {
        let groups = Groups::new_groups(&[group]);
        let joined = self.inner.add_mcast_membership(groups);
        joined.map_err(|error| Error::from(error).during("netlink multicast group"))
    }

    /// Send a request to a family, and gather what it is answered.
    pub(super) fn ask(&mut self, family: u16, request: &Request) -> Result<Vec<Reply>, Trouble> {
        self.sequence = self.sequence.wrapping_add(1);
        self.send(&request.message(family, self.sequence)?)?;
        let mut replies = Vec::new();
        loop {
            for message in self.receive().map_err(Error::from)?? {
                if *message.nl_seq() != self.sequence {
                    continue;
                }
                if take(message, request, &mut replies)? {
                    return Ok(replies);
                }
            }
        }
    }

    /// Wait for a datagram of messages. The outer error is the socket's, the inner one that of a
    /// datagram which makes no sense.
    pub(super) fn receive(&mut self) -> io::Result<Result<Vec<Message>, Error>> {
        let length = loop {
            match self.inner.recv(&mut self.buffer, Msg::TRUNC) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => break other?.0,
            }
        };
        Ok(match self.buffer.get(..length) {
            Some(bytes) => split(bytes),
            None => Err(Error::failed("the kernel sent a message that is too long")),
        })
    }

    fn send(&self, message: &Message) -> Result<(), Error> {
        let mut bytes = Cursor::new(Vec::with_capacity(message.padded_size()));
        message
            .to_bytes(&mut bytes)
            .map_err(|error| Error::failed(format!("cannot encode the request: {error}")))?;
        self.inner.send(bytes.get_ref(), Msg::empty())?;
        Ok(())
    }
}

/// Take a message of an answer; true if it is the last.
fn take(message: Message, request: &Request, replies: &mut Vec<Reply>) -> Result<bool, Trouble> {
    let refuse = |error: &i32, extack| Trouble::Refused(Refusal::read(*error, extack, request));
    match message.nl_payload() {
        NlPayload::Err(error) => Err(refuse(error.error(), error.ext_ack())),
        NlPayload::DumpExtAck(done) if *done.error() < 0 => {
            Err(refuse(done.error(), done.ext_ack()))
        }
        NlPayload::Payload(_) => {
            replies.extend(reply(message));
            Ok(false)
        }
        NlPayload::Ack(_) => Ok(!request.is_dump()),
        NlPayload::DumpExtAck(_) | NlPayload::Empty => Ok(true),
    }
}

/// The command and the attributes of a message that has them.
pub(super) fn reply(message: Message) -> Option<Reply> {
    let payload = message.get_payload()?;
    Some(Reply {
        command: *payload.cmd(),
        attributes: Attributes::new(payload.attrs().iter().cloned().collect()),
    })
}

fn split(bytes: &[u8]) -> Result<Vec<Message>, Error> {
    let mut cursor = Cursor::new(bytes);
    let mut messages = Vec::new();
    while (cursor.position() as usize) < bytes.len() {
        let message = Message::from_bytes(&mut cursor)
            .map_err(|error| Error::failed(format!("malformed netlink message: {error}")))?;
        messages.push(message);
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;
    use crate::uapi::{ns, Command};

    /// A netlink message of the given type and flags.
    fn raw(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (16 + payload.len() as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(1u32.to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend(payload);
        bytes
    }

    /// Feed datagrams to `take` as `ask` does.
    fn gather(request: &Request, datagrams: &[Vec<u8>]) -> Result<(usize, bool), Error> {
        let mut replies = Vec::new();
        let mut done = false;
        for message in datagrams.iter().flat_map(|bytes| split(bytes).unwrap()) {
            assert!(!done, "a message after the last");
            done = take(message, request, &mut replies).map_err(Error::from)?;
        }
        Ok((replies.len(), done))
    }

    fn namespace() -> Vec<u8> {
        let mut payload = vec![Command::NsGet as u8, 1, 0, 0];
        payload.extend([8, 0, ns::NSID as u8, 0, 1, 0, 0, 0]);
        payload
    }

    #[test]
    fn a_do_ends_with_its_acknowledgement() {
        let request = Request::new(Command::NsGet);
        let mut ack = 0i32.to_ne_bytes().to_vec();
        ack.extend(raw(0x1234, 5, &[]));
        let datagrams = [raw(0x1234, 0, &namespace()), raw(2, 0x100, &ack)];
        assert_eq!(gather(&request, &datagrams).unwrap(), (1, true));
    }

    #[test]
    fn a_dump_ends_with_done() {
        let request = Request::new(Command::NsGet).dump();
        let mut first = raw(0x1234, 2, &namespace());
        first.extend(raw(0x1234, 2, &namespace()));
        let done = raw(3, 2, &0i32.to_ne_bytes());
        assert_eq!(gather(&request, &[first, done]).unwrap(), (2, true));
    }

    #[test]
    fn a_dump_may_fail_at_its_end() {
        let request = Request::new(Command::NsGet).dump();
        let done = raw(3, 2, &(-2i32).to_ne_bytes());
        let error = gather(&request, &[done]).unwrap_err();
        assert_eq!(error.status, Status::NotFound);
    }

    #[test]
    fn an_error_brings_its_extended_acknowledgement() {
        let request = Request::new(Command::NsGet).with(ns::NSID, 0u32).unwrap();
        let mut payload = (-34i32).to_ne_bytes().to_vec();
        let mut echo = vec![Command::NsGet as u8, 1, 0, 0];
        echo.extend([8, 0, ns::NSID as u8, 0, 0, 0, 0, 0]);
        payload.extend(raw(0x1234, 5, &echo));
        payload.extend([13, 0, 1, 0]);
        payload.extend(b"too small\0\0\0");
        payload.extend([8, 0, 2, 0, 20, 0, 0, 0]);
        let error = gather(&request, &[raw(2, 0x200, &payload)]).unwrap_err();
        assert_eq!(error.message, "too small (attribute nsid)");
    }

    #[test]
    fn a_cut_message_is_an_error() {
        let whole = raw(0x1234, 0, &namespace());
        assert!(split(&whole[..whole.len() - 2]).is_err());
        assert!(split(&whole[..3]).is_err());
    }

    // Every Linux kernel has the family that describes families.

    use neli::consts::genl::{CtrlAttr, CtrlCmd};
    use neli::consts::nl::GenlId;

    fn family(name: &str) -> Result<Vec<Reply>, Trouble> {
        let request = Request::raw(CtrlCmd::Getfamily.into(), 2, |_| Some("family-name"))
            .with(CtrlAttr::FamilyName.into(), name)
            .unwrap();
        Socket::open().unwrap().ask(GenlId::Ctrl.into(), &request)
    }

    #[test]
    fn the_kernel_answers_a_do() {
        let replies = family("nlctrl").map_err(Error::from).unwrap();
        assert_eq!(replies.len(), 1);
        let id = replies[0].attributes.u16(CtrlAttr::FamilyId.into());
        assert_eq!(id, Ok(Some(GenlId::Ctrl.into())));
    }

    #[test]
    fn the_kernel_answers_a_dump() {
        let request = Request::raw(CtrlCmd::Getfamily.into(), 2, |_| None).dump();
        let mut socket = Socket::open().unwrap();
        // Twice, for the second answer must not be taken for the first.
        for _ in 0..2 {
            let answer = socket.ask(GenlId::Ctrl.into(), &request);
            let replies = answer.map_err(Error::from).unwrap();
            let name = |reply: &Reply| reply.attributes.string(CtrlAttr::FamilyName.into());
            assert!(replies
                .iter()
                .any(|reply| name(reply) == Ok(Some("nlctrl".into()))));
        }
    }

    #[test]
    fn the_kernel_refuses() {
        let Err(Trouble::Refused(refusal)) = family("no-such") else {
            panic!("not refused");
        };
        assert_eq!(refusal.errno(), 2);
        // Longer than the policy allows: the kernel points at the attribute.
        let error = family(&"x".repeat(100)).map_err(Error::from).err();
        let message = error.unwrap().message;
        assert!(message.ends_with("(attribute family-name)"), "{message}");
    }
}
