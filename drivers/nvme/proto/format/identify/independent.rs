// SPDX-License-Identifier: GPL-2.0

//! Identify Namespace, independent of the command set.

use super::ShortData;
use crate::format::layout::Reader;
use crate::format::sqe::Identify;

/// What a namespace is whatever its command set. The default is that of one
/// whose controller does not know the structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndependentNamespace {
    /// Whether its medium rotates.
    pub rotational: bool,
    /// Whether it has no volatile write cache, though its controller has.
    pub no_write_cache: bool,
    /// Whether it is ready for I/O.
    pub ready: bool,
}

impl Default for IndependentNamespace {
    fn default() -> Self {
        Self {
            rotational: false,
            no_write_cache: false,
            ready: true,
        }
    }
}

impl IndependentNamespace {
    /// Reads what the Identify command returned.
    pub fn parse(data: &[u8]) -> Result<Self, ShortData> {
        let fields = Reader::<{ Identify::DATA_SIZE }>::new(data).ok_or(ShortData(data.len()))?;
        let features = fields.u8::<0>();
        Ok(Self {
            rotational: features & (1 << 4) != 0,
            no_write_cache: features & (1 << 5) != 0,
            ready: fields.u8::<14>() & 1 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let mut data = [0; 4096];
        for (features, status) in [(0x00, 0), (0x10, 1), (0x20, 0xfe), (0xcf, 0xff), (0x30, 1)] {
            (data[0], data[14]) = (features, status);
            let expected = IndependentNamespace {
                rotational: features & 0x10 != 0,
                no_write_cache: features & 0x20 != 0,
                ready: status & 1 != 0,
            };
            assert_eq!(IndependentNamespace::parse(&data), Ok(expected));
        }
        assert_eq!(
            IndependentNamespace::parse(&data[..4095]),
            Err(ShortData(4095))
        );
    }
}
