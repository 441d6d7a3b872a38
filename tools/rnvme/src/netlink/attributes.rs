// SPDX-License-Identifier: GPL-2.0

//! The attributes of a message. Ones that are not asked for are passed over, so that a newer
//! kernel may send more than this program knows.

use crate::error::Error;
use neli::attr::Attribute;
use neli::genl::Nlattr;
use neli::types::{Buffer, GenlBuffer};
use std::fmt;

/// The attributes of a message or of a nest.
pub(crate) struct Attributes(GenlBuffer<u16, Buffer>);

/// A message that does not keep to the specification.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// An attribute has a value that its type does not allow.
    Value(u16),
    /// An attribute that is always there is not.
    Missing(&'static str),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(id) => write!(f, "the kernel sent a malformed attribute {id}"),
            Self::Missing(name) => write!(f, "the kernel left out the attribute {name}"),
        }
    }
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::failed(malformed.to_string())
    }
}

impl Attributes {
    /// The attributes of a message.
    pub(crate) fn new(buffer: GenlBuffer<u16, Buffer>) -> Self {
        Self(buffer)
    }

    /// The value of an attribute that is always there.
    pub(crate) fn require<T>(&self, name: &'static str, value: Option<T>) -> Result<T, Malformed> {
        value.ok_or(Malformed::Missing(name))
    }

    /// An unsigned 8-bit number.
    pub(crate) fn u8(&self, id: u16) -> Result<Option<u8>, Malformed> {
        Ok(self.array(id)?.map(u8::from_ne_bytes))
    }

    /// An unsigned 16-bit number.
    pub(crate) fn u16(&self, id: u16) -> Result<Option<u16>, Malformed> {
        Ok(self.array(id)?.map(u16::from_ne_bytes))
    }

    /// An unsigned 32-bit number.
    pub(crate) fn u32(&self, id: u16) -> Result<Option<u32>, Malformed> {
        Ok(self.array(id)?.map(u32::from_ne_bytes))
    }

    /// A signed 32-bit number.
    pub(crate) fn s32(&self, id: u16) -> Result<Option<i32>, Malformed> {
        Ok(self.array(id)?.map(i32::from_ne_bytes))
    }

    /// An unsigned number of four or eight bytes.
    pub(crate) fn uint(&self, id: u16) -> Result<Option<u64>, Malformed> {
        match self.payload(id).map(<[u8]>::len) {
            Some(4) => Ok(self.u32(id)?.map(u64::from)),
            _ => Ok(self.array(id)?.map(u64::from_ne_bytes)),
        }
    }

    /// Bytes, exactly as many.
    pub(crate) fn array<const N: usize>(&self, id: u16) -> Result<Option<[u8; N]>, Malformed> {
        self.payload(id)
            .map(|bytes| bytes.try_into().map_err(|_| Malformed::Value(id)))
            .transpose()
    }

    /// A string, which ends in a NUL. Bytes that a terminal may take for a command are replaced.
    pub(crate) fn string(&self, id: u16) -> Result<Option<String>, Malformed> {
        let Some(bytes) = self.payload(id) else {
            return Ok(None);
        };
        let (0, text) = bytes.split_last().ok_or(Malformed::Value(id))? else {
            return Err(Malformed::Value(id));
        };
        let text = String::from_utf8_lossy(text);
        let printable = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        Ok(Some(text.chars().map(printable).collect()))
    }

    /// A flag.
    pub(crate) fn flag(&self, id: u16) -> bool {
        self.find(id).is_some()
    }

    /// Attributes inside an attribute.
    pub(crate) fn nest(&self, id: u16) -> Result<Option<Self>, Malformed> {
        self.find(id)
            .map(|attribute| {
                attribute
                    .get_payload_as_with_len()
                    .map(Self)
                    .map_err(|_| Malformed::Value(id))
            })
            .transpose()
    }

    /// Each attribute of a list whose entries are numbered nests.
    pub(crate) fn entries(&self) -> Result<Vec<Self>, Malformed> {
        let ids = self.0.iter().map(|each| *each.nla_type().nla_type());
        ids.filter_map(|id| self.nest(id).transpose()).collect()
    }

    fn find(&self, id: u16) -> Option<&Nlattr<u16, Buffer>> {
        self.0.iter().find(|each| *each.nla_type().nla_type() == id)
    }

    fn payload(&self, id: u16) -> Option<&[u8]> {
        self.find(id).map(|each| each.nla_payload().as_ref())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use neli::genl::{AttrTypeBuilder, NlattrBuilder};
    use neli::{FromBytesWithInput, Size, ToBytes};
    use std::io::Cursor;

    type Raw = Nlattr<u16, Buffer>;

    fn raw(id: u16, payload: Vec<u8>) -> Raw {
        NlattrBuilder::default()
            .nla_type(AttrTypeBuilder::default().nla_type(id).build().unwrap())
            .nla_payload(Buffer::from(payload))
            .build()
            .unwrap()
    }

    /// A number, in as many bytes as its type has.
    pub(crate) fn number<T: ToBytes>(id: u16, value: T) -> Raw {
        let mut bytes = Cursor::new(Vec::new());
        value.to_bytes(&mut bytes).unwrap();
        raw(id, bytes.into_inner())
    }

    /// A string with its NUL.
    pub(crate) fn text(id: u16, value: &str) -> Raw {
        raw(id, [value.as_bytes(), b"\0"].concat())
    }

    /// Bytes.
    pub(crate) fn bytes(id: u16, value: &[u8]) -> Raw {
        raw(id, value.to_vec())
    }

    /// A flag.
    pub(crate) fn flag(id: u16) -> Raw {
        raw(id, Vec::new())
    }

    /// A nest, with the bit that says so.
    pub(crate) fn nest(id: u16, list: Vec<Raw>) -> Raw {
        let mut inner = Cursor::new(Vec::new());
        list.into_iter()
            .collect::<GenlBuffer<u16, Buffer>>()
            .to_bytes(&mut inner)
            .unwrap();
        raw(id | (1 << 15), inner.into_inner())
    }

    /// Attributes that went over the wire.
    pub(crate) fn attributes(list: Vec<Raw>) -> Attributes {
        let mut wire = Cursor::new(Vec::new());
        let buffer: GenlBuffer<u16, Buffer> = list.into_iter().collect();
        let size = buffer.padded_size();
        buffer.to_bytes(&mut wire).unwrap();
        let wire = wire.into_inner();
        Attributes(GenlBuffer::from_bytes_with_input(&mut Cursor::new(wire), size).unwrap())
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
            number(2, 1u64 << 40),
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
                nest(2, vec![number(5, 2u32)]),
            ],
        )]);
        let entries = message.nest(1).unwrap().unwrap().entries().unwrap();
        let values: Vec<_> = entries.iter().map(|each| each.u32(5).unwrap()).collect();
        assert_eq!(values, [Some(1), Some(2)]);
        assert!(message.nest(2).unwrap().is_none());
    }
}
