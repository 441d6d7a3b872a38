// SPDX-License-Identifier: GPL-2.0

use super::*;

/// An attribute with its header and padding, written out by hand.
pub(crate) fn bytes(id: u16, value: &[u8]) -> Vec<u8> {
    let mut raw = ((HEADER + value.len()) as u16).to_ne_bytes().to_vec();
    raw.extend(id.to_ne_bytes());
    raw.extend(value);
    raw.resize(align(raw.len()), 0);
    raw
}

/// A number, in as many bytes as its type has.
pub(crate) fn number(id: u16, value: impl AttrValue) -> Vec<u8> {
    let mut raw = Vec::new();
    value.put(&mut raw);
    bytes(id, &raw)
}

/// A string with its NUL.
pub(crate) fn text(id: u16, value: &str) -> Vec<u8> {
    bytes(id, &[value.as_bytes(), b"\0"].concat())
}

/// A flag.
pub(crate) fn flag(id: u16) -> Vec<u8> {
    bytes(id, &[])
}

/// A nest, with the bit that says so.
pub(crate) fn nest(id: u16, list: Vec<Vec<u8>>) -> Vec<u8> {
    bytes(id | libc::NLA_F_NESTED as u16, &list.concat())
}

/// Attributes that went over the wire.
pub(crate) fn attributes(list: Vec<Vec<u8>>) -> Attributes {
    Attributes::parse(&list.concat()).unwrap()
}

#[test]
fn numbers_have_their_size() {
    let message = attributes(vec![number(1, 7u8), number(2, 7u16), number(3, 7u32)]);
    assert_eq!(message.u8(1), Ok(Some(7)));
    assert_eq!(message.u16(2), Ok(Some(7)));
    assert_eq!(message.u32(3), Ok(Some(7)));
    assert_eq!(message.u32(2), Err(Malformed::Value(2)));
    assert_eq!(message.u32(4), Ok(None));
}

#[test]
fn uint_takes_four_or_eight_bytes() {
    let message = attributes(vec![
        number(1, 7u32),
        bytes(2, &(1u64 << 40).to_ne_bytes()),
        number(3, 7u16),
    ]);
    assert_eq!(message.uint(1), Ok(Some(7)));
    assert_eq!(message.uint(2), Ok(Some(1 << 40)));
    assert_eq!(message.uint(3), Err(Malformed::Value(3)));
    assert_eq!(message.uint(4), Ok(None));
}

#[test]
fn a_string_ends_in_a_nul_and_cannot_drive_a_terminal() {
    let message = attributes(vec![text(1, "a\x1b[2Jb"), bytes(2, b"ab"), flag(3)]);
    assert_eq!(message.string(1).unwrap().unwrap(), "a\u{fffd}[2Jb");
    assert_eq!(message.string(2), Err(Malformed::Value(2)));
    assert_eq!(message.string(3), Err(Malformed::Value(3)));
}

#[test]
fn nests_and_lists_of_nests() {
    let message = attributes(vec![nest(
        1,
        vec![
            nest(1, vec![number(5, 1u32)]),
            nest(1, vec![number(5, 2u32)]),
        ],
    )]);
    let entries = message.nest(1).unwrap().unwrap().entries().unwrap();
    let values: Vec<_> = entries.iter().map(|each| each.u32(5).unwrap()).collect();
    assert_eq!(values, [Some(1), Some(2)]);
    assert_eq!(message.nest(2), Ok(None));
    assert_eq!(message.nests(1).unwrap().len(), 1);
    assert!(message.nests(2).unwrap().is_empty());
}

#[test]
fn lengths_must_fit() {
    for broken in [&[3, 0, 1, 0][..], &[8, 0, 1, 0, 1, 2, 3], &[5, 0, 1]] {
        assert_eq!(Attributes::parse(broken), Err(Malformed::Message));
    }
    // The last attribute need not be padded.
    assert!(Attributes::parse(&[5, 0, 1, 0, 9]).is_ok());
}
