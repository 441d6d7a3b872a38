// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::uapi::{ctrl, ns, CONNECT_DO, NS_GET_DO};
use netlink_packet_core::{NetlinkPayload, NLM_F_ACK, NLM_F_REQUEST};
use serde_json::json;

/// Size of `struct nlmsghdr`, in bytes.
const NETLINK_HEADER: usize = 16;

/// Returns an attribute with its header and padding.
pub(in super::super) fn bytes(id: u16, value: &[u8]) -> Vec<u8> {
    let mut raw = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    raw.extend(id.to_ne_bytes());
    raw.extend(value);
    raw.resize(raw.len().next_multiple_of(4), 0);
    raw
}

/// Returns an attribute with a 32-bit number.
pub(in super::super) fn number(id: u16, value: u32) -> Vec<u8> {
    bytes(id, &value.to_ne_bytes())
}

/// Returns an attribute with a string and its NUL.
pub(in super::super) fn text(id: u16, value: &str) -> Vec<u8> {
    bytes(id, format!("{value}\0").as_bytes())
}

/// Returns a nest, with the flag `NLA_F_NESTED`.
pub(in super::super) fn nest(id: u16, list: &[Vec<u8>]) -> Vec<u8> {
    bytes(id | libc::NLA_F_NESTED as u16, &list.concat())
}

/// Message type of a family.
const FAMILY: i32 = 0x1234;

/// Returns a message that answers request 1.
pub(in super::super) fn raw(kind: i32, flags: i32, payload: &[u8]) -> Vec<u8> {
    let mut message = ((NETLINK_HEADER + payload.len()) as u32)
        .to_ne_bytes()
        .to_vec();
    message.extend((kind as u16).to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend(1u32.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend(payload);
    message.resize(message.len().next_multiple_of(4), 0);
    message
}

/// Returns a reply or a notification of the family.
pub(in super::super) fn data(flags: i32, command: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    data_of(FAMILY, flags, command, attributes)
}

/// Returns a reply or a notification of any family.
pub(in super::super) fn data_of(
    family: i32,
    flags: i32,
    command: u8,
    attributes: &[Vec<u8>],
) -> Vec<u8> {
    let payload = [&[command, 1, 0, 0][..], &attributes.concat()].concat();
    raw(family, flags, &payload)
}

/// Returns the acknowledgement of a do, which repeats a rejected request.
pub(in super::super) fn error(errno: i32, echo: &[u8], extack: &[Vec<u8>]) -> Vec<u8> {
    let mut flags = if extack.is_empty() {
        0
    } else {
        libc::NLM_F_ACK_TLVS
    };
    if errno == 0 {
        flags |= libc::NLM_F_CAPPED;
    }
    let request = raw(FAMILY, libc::NLM_F_REQUEST, echo);
    let payload = [&(-errno).to_ne_bytes()[..], &request, &extack.concat()].concat();
    raw(libc::NLMSG_ERROR, flags, &payload)
}

/// Returns the end of a dump.
pub(in super::super) fn done(errno: i32) -> Vec<u8> {
    raw(libc::NLMSG_DONE, libc::NLM_F_MULTI, &(-errno).to_ne_bytes())
}

#[test]
fn a_request_has_the_layout_of_the_kernel() {
    let mut header = NetlinkHeader::default();
    header.message_type = 0x1234;
    header.flags = NLM_F_REQUEST | NLM_F_ACK;
    header.sequence_number = 7;
    let args = json!({
        "traddr": "10.0.0.9",
        "trsvcid": 4420,
        "tos": null,
        "disable_sqflow": false,
        "duplicate_connect": true,
    });
    let mut expected = Vec::new();
    expected.extend(48u32.to_ne_bytes()); // length
    expected.extend(0x1234u16.to_ne_bytes()); // family
    expected.extend(5u16.to_ne_bytes()); // NLM_F_REQUEST | NLM_F_ACK
    expected.extend(7u32.to_ne_bytes()); // sequence
    expected.extend(0u32.to_ne_bytes()); // port
    expected.extend([1, 1, 0, 0]); // connect, version 1
    expected.extend(text(ctrl::TRADDR, "10.0.0.9"));
    expected.extend(bytes(ctrl::TRSVCID, &4420u16.to_ne_bytes()));
    expected.extend(bytes(ctrl::DUPLICATE_CONNECT, &[]));
    let request = Request::new(&CONNECT_DO, header, &args).unwrap();
    assert_eq!(request.bytes, expected);
}

#[test]
fn offsets_find_their_attribute() {
    let args = json!({"ctrl_id": 0, "nsid": 1});
    let request = Request::new(&NS_GET_DO, NetlinkHeader::default(), &args).unwrap();
    assert_eq!(request.attribute_at(20), Some("ctrl-id"));
    assert_eq!(request.attribute_at(28), Some("nsid"));
    assert_eq!(request.attribute_at(36), None);
    assert_eq!(request.attribute_at(37), None);
}

#[test]
fn a_datagram_has_several_messages() {
    let first = data(0, 7, &[number(ns::NSID, 5)]);
    let second = data(0, 8, &[]);
    let messages = split(&[first, second].concat()).unwrap();
    let read = |message: NetlinkMessage<Message>| match message.payload {
        NetlinkPayload::InnerMessage(message) => (message.command, message.attributes),
        other => panic!("{other:?}"),
    };
    let read: Vec<_> = messages.into_iter().map(read).collect();
    assert_eq!(read, [(7, number(ns::NSID, 5)), (8, vec![])]);
}

#[test]
fn what_is_cut_anywhere_is_malformed() {
    for whole in [
        data(0, 7, &[bytes(1, &[1, 2, 3, 4, 5])]),
        error(34, &[1, 2, 3, 4], &[text(1, "no")]),
        done(0),
    ] {
        assert!(split(&whole).is_ok());
        for length in 1..whole.len() {
            assert!(split(&whole[..length]).is_err(), "{length} of {whole:?}");
            // With the length in the header the message is valid or not, but does not panic.
            let mut short = whole[..length].to_vec();
            if length >= NETLINK_HEADER {
                short[..4].copy_from_slice(&(length as u32).to_ne_bytes());
                let _ = split(&short);
            }
        }
    }
}

#[test]
fn a_header_that_claims_nothing_cannot_go_on_for_ever() {
    assert!(split(&[0; 32]).is_err());
}
