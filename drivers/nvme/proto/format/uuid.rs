// SPDX-License-Identifier: GPL-2.0

//! Universally unique identifiers (UUID), such as host identifiers.

use core::fmt;

/// A UUID. Its bytes are in the order of its text, in NVMe structures, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Uuid([u8; Uuid::SIZE]);

impl Uuid {
    /// Size in bytes.
    pub const SIZE: usize = 16;

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

    const fn has_hyphen_before(byte: usize) -> bool {
        matches!(byte, 4 | 6 | 8 | 10)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes() {
        let bytes = 0x2cd2_c43b_a90a_45c1_a8cd_86b3_3ab2_73b5_u128.to_be_bytes();
        let uuid = Uuid::from_bytes(bytes);
        assert_eq!(uuid.to_bytes(), bytes);
        assert_eq!(uuid.to_string(), "2cd2c43b-a90a-45c1-a8cd-86b33ab273b5");
        assert!(!uuid.is_nil());
        assert!(Uuid::from_bytes([0; 16]).is_nil());
    }
}
