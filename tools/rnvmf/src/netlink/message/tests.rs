// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::nlattr::tests::{bytes, number, text};

fn split(bytes: &[u8]) -> Result<Vec<Message>, Malformed> {
    super::split(bytes, GENERIC_HEADER)
}

/// Message type of a family.
const FAMILY: i32 = 0x1234;

/// A netlink message of a type with flags, in answer to request 1.
pub(in super::super) fn raw(kind: i32, flags: i32, payload: &[u8]) -> Vec<u8> {
    let mut message = ((NETLINK_HEADER + payload.len()) as u32)
        .to_ne_bytes()
        .to_vec();
    message.extend((kind as u16).to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend(1u32.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend(payload);
    message.resize(align(message.len()), 0);
    message
}

/// A reply or an event of a family.
pub(in super::super) fn data(flags: i32, command: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    data_of(FAMILY, flags, command, attributes)
}

/// The same of a certain family.
pub(in super::super) fn data_of(
    family: i32,
    flags: i32,
    command: u8,
    attributes: &[Vec<u8>],
) -> Vec<u8> {
    let payload = [&[command, 1, 0, 0][..], &attributes.concat()].concat();
    raw(family, flags, &payload)
}

/// The end of a do, which repeats the request unless it succeeded.
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

/// The end of a dump.
pub(in super::super) fn done(errno: i32) -> Vec<u8> {
    raw(libc::NLMSG_DONE, libc::NLM_F_MULTI, &(-errno).to_ne_bytes())
}

fn verdict_of(datagram: &[u8]) -> Ack {
    let message = split(datagram).unwrap().remove(0);
    assert_eq!(message.sequence, 1);
    match message.body {
        MessageBody::Ack(ack) => ack,
        _ => panic!("no end"),
    }
}

#[test]
fn a_datagram_has_several_messages() {
    let first = data(0, 7, &[number(1, 5u8)]);
    let second = data(0, 8, &[text(2, "x")]);
    let messages = split(&[first, second].concat()).unwrap();
    let read = |body: &MessageBody| match body {
        MessageBody::Payload(data) => (
            data.header[0],
            data.attributes.u8(1),
            data.attributes.string(2),
        ),
        _ => panic!("no data"),
    };
    let read: Vec<_> = messages.iter().map(|message| read(&message.body)).collect();
    assert_eq!(
        read,
        [
            (7, Ok(Some(5)), Ok(None)),
            (8, Ok(None), Ok(Some("x".into())))
        ]
    );
}

#[test]
fn an_extended_acknowledgement_follows_the_request() {
    for echo in [&[][..], &[1, 2, 3, 4], &[1, 2, 3]] {
        let ack = verdict_of(&error(34, echo, &[text(1, "too small")]));
        assert_eq!(ack.error, -34);
        assert_eq!(ack.extack.string(1), Ok(Some("too small".into())));
    }
}

#[test]
fn a_capped_error_repeats_the_header_only() {
    let payload = [
        &(-1i32).to_ne_bytes()[..],
        &100u32.to_ne_bytes(),
        &[0; 12],
        &text(1, "no"),
    ];
    let flags = libc::NLM_F_CAPPED | libc::NLM_F_ACK_TLVS;
    let ack = verdict_of(&raw(libc::NLMSG_ERROR, flags, &payload.concat()));
    assert_eq!(ack.extack.string(1), Ok(Some("no".into())));
}

#[test]
fn a_dump_ends_with_its_error() {
    assert_eq!(verdict_of(&done(0)).error, 0);
    assert_eq!(verdict_of(&done(2)).error, -2);
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
            // The same with a header that knows: what it has of attributes must be whole.
            let mut short = whole[..length].to_vec();
            if length >= NETLINK_HEADER {
                short[..4].copy_from_slice(&(length as u32).to_ne_bytes());
                // It must not panic; a list of attributes may well end here.
                let _ = split(&short);
            }
        }
    }
}

#[test]
fn a_header_that_claims_nothing_cannot_go_on_for_ever() {
    assert!(split(&[0; 32]).is_err());
}
