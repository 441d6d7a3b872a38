// SPDX-License-Identifier: GPL-2.0

//! Command identifiers (CID).
//!
//! A CID joins the tag of a request and a generation, which changes whenever the tag is reused. A
//! late or repeated response therefore does not match the next request of its tag. The layout is
//! that of the C host (`nvme_cid()`).

/// A tag of a request: 12 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tag(u16);

impl Tag {
    /// Number of tags.
    pub const COUNT: u16 = 1 << Self::BITS;

    const BITS: u32 = 12;

    /// Returns the tag of a number; `None` if the number has more than 12 bits.
    #[inline]
    pub fn new(tag: u32) -> Option<Self> {
        u16::try_from(tag)
            .ok()
            .filter(|tag| *tag < Self::COUNT)
            .map(Self)
    }

    /// Returns the tag's number.
    #[inline]
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// Number of uses of a tag, modulo 16.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Generation(u8);

impl Generation {
    const MASK: u8 = 0xf;

    /// Returns the next generation.
    #[inline]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1) & Self::MASK)
    }

    /// Returns the generation's number, below 16.
    #[inline]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// A command identifier, as in commands and completions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandId(u16);

impl CommandId {
    /// Returns the identifier of a tag and its generation.
    #[inline]
    pub const fn new(tag: Tag, generation: Generation) -> Self {
        Self(((generation.0 as u16) << Tag::BITS) | tag.0)
    }

    /// Returns the identifier with the value of a received field; every value is valid.
    #[inline]
    pub const fn from_wire(cid: u16) -> Self {
        Self(cid)
    }

    /// Returns the value of the field.
    #[inline]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Returns the tag of the request.
    #[inline]
    pub const fn tag(self) -> Tag {
        Tag(self.0 & (Tag::COUNT - 1))
    }

    /// Returns the generation of the tag.
    #[inline]
    pub const fn generation(self) -> Generation {
        Generation((self.0 >> Tag::BITS) as u8 & Generation::MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_identifier_splits_and_joins() {
        for cid in 0..=u16::MAX {
            let id = CommandId::from_wire(cid);
            assert_eq!(id.tag().get(), cid & 0xfff);
            assert_eq!(u16::from(id.generation().get()), cid >> 12);
            assert_eq!(CommandId::new(id.tag(), id.generation()).get(), cid);
        }
    }

    #[test]
    fn tags_have_12_bits() {
        assert_eq!(Tag::new(0).unwrap().get(), 0);
        assert_eq!(Tag::new(4095).unwrap().get(), 4095);
        assert_eq!(Tag::new(4096), None);
        assert_eq!(Tag::new(u32::MAX), None);
    }

    #[test]
    fn generations_wrap_after_16() {
        let mut generation = Generation::default();
        for expected in (1..16).chain([0, 1]) {
            generation = generation.next();
            assert_eq!(generation.get(), expected);
        }
    }
}
