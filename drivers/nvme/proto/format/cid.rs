// SPDX-License-Identifier: GPL-2.0

//! Command identifiers.
//!
//! An identifier is the tag of a request and a generation that changes each
//! time the tag is used again, so that a late or repeated response does not
//! match the next request of the tag.

/// Tag of a request: 12 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tag(u16);

impl Tag {
    /// How many tags there are.
    pub const COUNT: u16 = 1 << Self::BITS;

    const BITS: u32 = 12;

    /// Takes a tag number; `None` where it has more than 12 bits.
    #[inline]
    #[must_use]
    pub fn new(tag: u32) -> Option<Self> {
        u16::try_from(tag)
            .ok()
            .filter(|tag| *tag < Self::COUNT)
            .map(Self)
    }

    /// The tag's number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// How many times, modulo 16, a tag has been used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Generation(u8);

impl Generation {
    const MASK: u8 = 0xf;

    /// Takes the low 4 bits of `value`: for a counter kept in an atomic.
    #[inline]
    #[must_use]
    pub const fn from_counter(value: u8) -> Self {
        Self(value & Self::MASK)
    }

    /// The generation after this one.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1) & Self::MASK)
    }

    /// The generation's number, below 16.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// A command identifier, as commands and completions carry one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandId(u16);

impl CommandId {
    /// Joins a tag and its generation.
    #[inline]
    #[must_use]
    pub const fn new(tag: Tag, generation: Generation) -> Self {
        Self(((generation.0 as u16) << Tag::BITS) | tag.0)
    }

    /// Takes an identifier off the wire; any value is one.
    #[inline]
    #[must_use]
    pub const fn from_wire(cid: u16) -> Self {
        Self(cid)
    }

    /// The identifier as it goes on the wire.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The request's tag.
    #[inline]
    #[must_use]
    pub const fn tag(self) -> Tag {
        Tag(self.0 & (Tag::COUNT - 1))
    }

    /// The tag's generation.
    #[inline]
    #[must_use]
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
            assert_eq!(Generation::from_counter(expected | 0xf0), generation);
        }
    }
}
