// SPDX-License-Identifier: GPL-2.0

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
    let request = Request::generic(GETFAMILY, 2, |_| Some("family-name")).with(FAMILY_NAME, name);
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
