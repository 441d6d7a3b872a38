// SPDX-License-Identifier: GPL-2.0

use super::super::codec::find;
use super::super::family::{GET_FAMILY, NLCTRL};
use super::super::message::tests::{data, done, error, number, raw, text};
use super::*;
use crate::error::Status;
use crate::uapi::{ns, Command, NS_GET_DO, NS_GET_DUMP};
use netlink_packet_core::parse_u16;
use serde_json::json;

/// Feeds datagrams to `add_reply` as `request` does.
fn gather(request: &Request, datagrams: &[Vec<u8>]) -> Result<(usize, bool), Error> {
    let mut replies = Vec::new();
    let mut last = false;
    for message in datagrams.iter().flat_map(|bytes| split(bytes).unwrap()) {
        assert!(!last, "a message after the last");
        last = add_reply(message, request, &mut replies)?;
    }
    Ok((replies.len(), last))
}

fn namespace(flags: i32) -> Vec<u8> {
    data(flags, Command::NsGet as u8, &[number(ns::NSID, 1)])
}

fn request(spec: &'static uapi::Request) -> Request {
    Request::new(spec, NetlinkHeader::default(), &json!({"nsid": 1})).unwrap()
}

#[test]
fn a_do_ends_with_its_acknowledgement() {
    let noop = raw(libc::NLMSG_NOOP, 0, &[]);
    let datagrams = [noop, namespace(0), error(0, &[], &[])];
    assert_eq!(gather(&request(&NS_GET_DO), &datagrams).unwrap(), (1, true));
}

#[test]
fn a_dump_ends_with_done() {
    let first = [namespace(libc::NLM_F_MULTI), namespace(libc::NLM_F_MULTI)].concat();
    let datagrams = [first, done(0)];
    assert_eq!(
        gather(&request(&NS_GET_DUMP), &datagrams).unwrap(),
        (2, true)
    );
}

#[test]
fn a_dump_may_fail_at_its_end() {
    let failed = gather(&request(&NS_GET_DUMP), &[done(libc::ENOENT)]).unwrap_err();
    assert_eq!(failed.status, Status::NotFound);
}

#[test]
fn an_error_has_its_extended_acknowledgement() {
    let request = request(&NS_GET_DO);
    let extack = [text(1, "too small"), number(2, 20)];
    let datagram = error(libc::ERANGE, &request.bytes[16..], &extack);
    let failed = gather(&request, &[datagram]).unwrap_err();
    assert_eq!(failed.message, "too small (attribute nsid)");
}

// Every Linux kernel has the family that describes families.

fn family(name: &str) -> Result<Vec<Vec<u8>>, Error> {
    Socket::open(NLCTRL)?.exchange(&GET_FAMILY, NLM_F_ACK, &json!({"family_name": name}))
}

#[test]
fn the_kernel_answers_a_do() {
    let replies = family("nlctrl").unwrap();
    assert_eq!(replies.len(), 1);
    let id = find(&replies[0], libc::CTRL_ATTR_FAMILY_ID as u16).unwrap();
    assert_eq!(parse_u16(&id).unwrap(), NLCTRL);
}

#[test]
fn the_kernel_answers_a_dump() {
    let mut socket = Socket::open(NLCTRL).unwrap();
    // Twice: the second answer must not be taken for the first.
    for _ in 0..2 {
        let replies = socket
            .exchange(&GET_FAMILY, NLM_F_DUMP, &json!({}))
            .unwrap();
        let is_nlctrl = |reply: &Vec<u8>| {
            find(reply, libc::CTRL_ATTR_FAMILY_NAME as u16).as_deref() == Some(b"nlctrl\0")
        };
        assert!(replies.iter().any(is_nlctrl));
    }
}

#[test]
fn the_kernel_rejects() {
    assert_eq!(family("no-such").unwrap_err().status, Status::NotFound);
    // The name is longer than the policy allows: the kernel points at the attribute.
    let message = family(&"x".repeat(100)).unwrap_err().message;
    assert!(message.ends_with("(attribute family-name)"), "{message}");
}
