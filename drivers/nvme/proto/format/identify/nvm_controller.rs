// SPDX-License-Identifier: GPL-2.0

//! Identify Controller for the NVM command set (CNS 06h).
//!
//! Source: NVM Command Set, I/O Command Set specific Identify Controller data structure. C
//! structure: `struct nvme_id_ctrl_nvm`.

use super::ShortData;
use crate::format::layout::Reader;
use crate::format::sqe::Identify;

/// Limits of commands that transfer no blocks; 0 is no limit.
///
/// The default applies if the controller does not support the structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NvmController {
    /// Largest Write Zeroes (WZSL), as a power of two of the smallest memory page.
    pub write_zeroes_shift: u8,
    /// Largest number of ranges of a Dataset Management command (DMRL).
    pub dataset_management_ranges: u8,
    /// Largest number of blocks of one of its ranges (DMRSL).
    pub dataset_management_range_blocks: u32,
    /// Largest number of blocks of all its ranges (DMSL).
    pub dataset_management_blocks: u64,
}

impl NvmController {
    /// Decodes the data of an Identify command.
    ///
    /// # Errors
    ///
    /// [`ShortData`] if it is shorter than [`Identify::DATA_SIZE`].
    pub fn parse(data: &[u8]) -> Result<Self, ShortData> {
        let fields = Reader::<{ Identify::DATA_SIZE }>::new(data).ok_or(ShortData(data.len()))?;
        Ok(Self {
            write_zeroes_shift: fields.u8::<1>(),
            dataset_management_ranges: fields.u8::<3>(),
            dataset_management_range_blocks: fields.u32::<4>(),
            dataset_management_blocks: fields.u64::<8>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let mut data = [0; 4096];
        data[..16].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        let expected = NvmController {
            write_zeroes_shift: 2,
            dataset_management_ranges: 4,
            dataset_management_range_blocks: 0x0807_0605,
            dataset_management_blocks: 0x100f_0e0d_0c0b_0a09,
        };
        assert_eq!(NvmController::parse(&data), Ok(expected));
        assert_eq!(NvmController::parse(&data[..4095]), Err(ShortData(4095)));
        assert_eq!(
            NvmController::parse(&[0; 4096]),
            Ok(NvmController::default())
        );
    }
}
