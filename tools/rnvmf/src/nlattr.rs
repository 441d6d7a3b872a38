// SPDX-License-Identifier: GPL-2.0

//! Netlink attributes. Those that nobody asks for are ignored, so a newer kernel may send more than
//! this program knows.

use std::fmt;

/// Size of `struct nlattr`, in bytes.
pub(crate) const HEADER: usize = 4;

/// The bits of `nla_type` that are not part of the attribute's number.
const FLAGS: u16 = (libc::NLA_F_NESTED | libc::NLA_F_NET_BYTEORDER) as u16;

/// Rounds a length up to where the next message or attribute begins (`NLA_ALIGN`).
pub(crate) const fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// The attributes of a message or of a nest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Attributes(Vec<Attribute>);

#[derive(Debug, PartialEq, Eq)]
struct Attribute {
    id: u16,
    value: Vec<u8>,
}

/// A message that does not keep to the specification.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// The lengths in a message do not fit.
    Message,
    /// An attribute has a value that its type does not allow.
    Value(u16),
    /// An attribute that is always there is not.
    Missing(&'static str),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message => write!(f, "the kernel sent a malformed message"),
            Self::Value(id) => write!(f, "the kernel sent a malformed attribute {id}"),
            Self::Missing(name) => write!(f, "the kernel left out the attribute {name}"),
        }
    }
}

/// A value that an attribute can hold.
pub(crate) trait AttrValue {
    /// Appends the value in the kernel's byte order and layout.
    fn put(&self, out: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($kind:ty),*) => {
        $(impl AttrValue for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend(self.to_ne_bytes());
            }
        })*
    };
}
numbers!(u8, u16, u32);

#[cfg(test)]
numbers!(i32);

/// A string, with its NUL.
impl AttrValue for &str {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.as_bytes());
        out.push(0);
    }
}

/// Bytes.
impl<const N: usize> AttrValue for [u8; N] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self);
    }
}

/// A flag.
impl AttrValue for () {
    fn put(&self, _: &mut Vec<u8>) {}
}

impl Attributes {
    /// Read a list of attributes.
    pub(crate) fn parse(mut bytes: &[u8]) -> Result<Self, Malformed> {
        let mut list = Vec::new();
        while let Some((&[a, b, c, d], _)) = bytes.split_first_chunk::<HEADER>() {
            let length = usize::from(u16::from_ne_bytes([a, b]));
            let id = u16::from_ne_bytes([c, d]) & !FLAGS;
            let value = bytes.get(HEADER..length).ok_or(Malformed::Message)?;
            list.push(Attribute {
                id,
                value: value.to_vec(),
            });
            bytes = bytes.get(align(length)..).unwrap_or_default();
        }
        match bytes {
            [] => Ok(Self(list)),
            _ => Err(Malformed::Message),
        }
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
        match self.find(id).map(<[u8]>::len) {
            Some(4) => Ok(self.u32(id)?.map(u64::from)),
            _ => Ok(self.array(id)?.map(u64::from_ne_bytes)),
        }
    }

    /// Bytes, exactly as many.
    pub(crate) fn array<const N: usize>(&self, id: u16) -> Result<Option<[u8; N]>, Malformed> {
        self.find(id)
            .map(|bytes| bytes.try_into().map_err(|_| Malformed::Value(id)))
            .transpose()
    }

    /// A string, which ends in a NUL. Characters that a terminal may take for a command are
    /// replaced.
    pub(crate) fn string(&self, id: u16) -> Result<Option<String>, Malformed> {
        let Some(bytes) = self.find(id) else {
            return Ok(None);
        };
        let [text @ .., 0] = bytes else {
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
        self.find(id).map(Self::parse).transpose()
    }

    /// The nests of an attribute that there may be several of.
    pub(crate) fn nests(&self, id: u16) -> Result<Vec<Self>, Malformed> {
        let same = self.0.iter().filter(|each| each.id == id);
        same.map(|each| Self::parse(&each.value)).collect()
    }

    /// Each entry of a list, which are nests whatever their numbers are.
    pub(crate) fn entries(&self) -> Result<Vec<Self>, Malformed> {
        self.0.iter().map(|each| Self::parse(&each.value)).collect()
    }

    fn find(&self, id: u16) -> Option<&[u8]> {
        let found = self.0.iter().find(|each| each.id == id);
        found.map(|each| each.value.as_slice())
    }
}

#[cfg(test)]
pub(crate) mod tests;
