// SPDX-License-Identifier: GPL-2.0

//! Universally unique identifiers (UUID), such as host identifiers.

use core::fmt;

/// A UUID. Its bytes are in the order of its text, in NVMe structures, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Uuid([u8; Uuid::SIZE]);

impl Uuid {
    /// Size in bytes.
    pub const SIZE: usize = 16;

    /// Length of the text, such as `2cd2c43b-a90a-45c1-a8cd-86b33ab273b5`.
    pub const TEXT_LEN: usize = 36;

    /// Returns the UUID with these bytes.
    pub const fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub const fn to_bytes(self) -> [u8; Self::SIZE] {
        self.0
    }

    /// Returns whether all bits are zero: such a UUID identifies nothing.
    pub fn is_nil(self) -> bool {
        self.0 == [0; Self::SIZE]
    }

    /// Parses the text. Hexadecimal digits may have either case.
    ///
    /// # Errors
    ///
    /// [`InvalidUuid`].
    pub fn parse(text: &[u8]) -> Result<Self, InvalidUuid> {
        let text: &[u8; Self::TEXT_LEN] = text.try_into().map_err(|_| InvalidUuid)?;
        let mut characters = text.iter();
        let mut uuid = [0; Self::SIZE];
        for (index, byte) in uuid.iter_mut().enumerate() {
            if Self::has_hyphen_before(index) && characters.next() != Some(&b'-') {
                return Err(InvalidUuid);
            }
            let high = digit(characters.next())?;
            let low = digit(characters.next())?;
            *byte = (high << 4) | low;
        }
        Ok(Self(uuid))
    }

    const fn has_hyphen_before(byte: usize) -> bool {
        matches!(byte, 4 | 6 | 8 | 10)
    }
}

fn digit(character: Option<&u8>) -> Result<u8, InvalidUuid> {
    let value = character.and_then(|c| char::from(*c).to_digit(16));
    value
        .and_then(|value| u8::try_from(value).ok())
        .ok_or(InvalidUuid)
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if Self::has_hyphen_before(index) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// A text that is not a UUID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidUuid;

impl fmt::Display for InvalidUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a UUID of 32 hexadecimal digits in groups of 8-4-4-4-12")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    const TEXT: &str = "2cd2c43b-a90a-45c1-a8cd-86b33ab273b5";
    const BYTES: [u8; 16] = [
        0x2c, 0xd2, 0xc4, 0x3b, 0xa9, 0x0a, 0x45, 0xc1, 0xa8, 0xcd, 0x86, 0xb3, 0x3a, 0xb2, 0x73,
        0xb5,
    ];

    #[test]
    fn text_and_bytes() {
        let uuid = Uuid::parse(TEXT.as_bytes()).unwrap();
        assert_eq!(uuid.to_bytes(), BYTES);
        assert_eq!(uuid.to_string(), TEXT);
        assert_eq!(Uuid::parse(TEXT.to_uppercase().as_bytes()), Ok(uuid));
        assert!(!uuid.is_nil());
        assert!(Uuid::from_bytes([0; 16]).is_nil());
    }

    #[test]
    fn round_trips() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            let mut bytes = [0; 16];
            random.fill(&mut bytes);
            let uuid = Uuid::from_bytes(bytes);
            assert_eq!(Uuid::parse(uuid.to_string().as_bytes()), Ok(uuid));
        }
    }

    #[test]
    fn one_wrong_character() {
        for at in 0..TEXT.len() {
            for wrong in [b'g', b'-', b' ', b'+', 0, 0xff] {
                let mut text = TEXT.as_bytes().to_vec();
                if text[at] == wrong {
                    continue;
                }
                text[at] = wrong;
                assert_eq!(Uuid::parse(&text), Err(InvalidUuid), "{at} {wrong:#x}");
            }
            assert_eq!(Uuid::parse(&TEXT.as_bytes()[..at]), Err(InvalidUuid));
        }
        assert_eq!(
            Uuid::parse(b"{2cd2c43b-a90a-45c1-a8cd-86b33ab273b5}"),
            Err(InvalidUuid)
        );
    }
}
