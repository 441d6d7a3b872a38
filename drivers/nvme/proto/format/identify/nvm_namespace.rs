// SPDX-License-Identifier: GPL-2.0

//! Identify Namespace for the NVM command set (CNS 05h).
//!
//! Source: NVM Command Set, I/O Command Set specific Identify Namespace data structure.

use super::ShortData;
use crate::format::layout::Reader;
use crate::format::sqe::Identify;

/// Performance hints for deallocation, and the format of protection information.
///
/// The default applies if the controller does not support the structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NvmNamespace {
    /// Extended LBA format in use (ELBAF): see [`Self::has_simple_protection`].
    pub extended_format: u32,
    /// Preferred granularity of deallocation in blocks (NPDGL); 0 if not reported.
    pub deallocate_granularity: u32,
    /// Preferred alignment of deallocation in blocks (NPDAL); 0 if not reported.
    pub deallocate_alignment: u32,
}

impl NvmNamespace {
    const FORMATS: usize = 64;
    const FORMATS_SIZE: usize = Self::FORMATS * size_of::<u32>();

    /// Decodes the data of an Identify command. `format_index` is that of the LBA format in use.
    ///
    /// # Errors
    ///
    /// [`ShortData`] if it is shorter than [`Identify::DATA_SIZE`].
    pub fn parse(data: &[u8], format_index: u8) -> Result<Self, ShortData> {
        let fields = Reader::<{ Identify::DATA_SIZE }>::new(data).ok_or(ShortData(data.len()))?;
        let formats = fields.bytes::<12, { Self::FORMATS_SIZE }>();
        let mut formats = formats.chunks_exact(size_of::<u32>());
        let format = formats.nth(usize::from(format_index));
        let format = format.and_then(|format| format.first_chunk());
        Ok(Self {
            extended_format: u32::from_le_bytes(*format.unwrap_or(&[0; 4])),
            deallocate_granularity: fields.u32::<268>(),
            deallocate_alignment: fields.u32::<284>(),
        })
    }

    /// Returns whether protection information has a guard of 16 bits (PIF), and no storage tag (STS).
    pub const fn has_simple_protection(&self) -> bool {
        self.extended_format & 0x1ff == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let mut data = [0; 4096];
        data[16..20].copy_from_slice(&[9, 8, 7, 6]);
        data[264..268].copy_from_slice(&[4, 3, 2, 1]);
        data[268..272].copy_from_slice(&[1, 2, 3, 4]);
        data[284..288].copy_from_slice(&[5, 6, 7, 8]);
        let expected = NvmNamespace {
            extended_format: 0x0607_0809,
            deallocate_granularity: 0x0403_0201,
            deallocate_alignment: 0x0807_0605,
        };
        assert_eq!(NvmNamespace::parse(&data, 1), Ok(expected));
        assert_eq!(NvmNamespace::parse(&data[..4095], 1), Err(ShortData(4095)));
        let last = NvmNamespace::parse(&data, 63).unwrap();
        assert_eq!(last.extended_format, 0x0102_0304);
        let beyond = NvmNamespace::parse(&data, 64).unwrap();
        assert!(beyond.has_simple_protection());
    }

    #[test]
    fn simple_protection() {
        for (extended_format, simple) in [
            (0, true),
            (1, false),
            (0x40, false),
            (0x80, false),
            (0x100, false),
            (0xffff_fe00, true),
        ] {
            let namespace = NvmNamespace {
                extended_format,
                ..NvmNamespace::default()
            };
            assert_eq!(namespace.has_simple_protection(), simple);
        }
    }
}
