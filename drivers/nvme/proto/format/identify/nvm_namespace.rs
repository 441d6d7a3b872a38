// SPDX-License-Identifier: GPL-2.0

//! Identify Namespace for the NVM command set (CNS 05h).
//!
//! Source: NVM Command Set, I/O Command Set specific Identify Namespace data structure.

use super::ShortData;
use crate::format::layout::Reader;
use crate::format::sqe::Identify;

/// Performance hints for deallocation.
///
/// The default applies if the controller does not support the structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NvmNamespace {
    /// Preferred granularity of deallocation in blocks (NPDGL); 0 if not reported.
    pub deallocate_granularity: u32,
    /// Preferred alignment of deallocation in blocks (NPDAL); 0 if not reported.
    pub deallocate_alignment: u32,
}

impl NvmNamespace {
    /// Decodes the data of an Identify command.
    ///
    /// # Errors
    ///
    /// [`ShortData`] if it is shorter than [`Identify::DATA_SIZE`].
    pub fn parse(data: &[u8]) -> Result<Self, ShortData> {
        let fields = Reader::<{ Identify::DATA_SIZE }>::new(data).ok_or(ShortData(data.len()))?;
        Ok(Self {
            deallocate_granularity: fields.u32::<268>(),
            deallocate_alignment: fields.u32::<284>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let mut data = [0; 4096];
        data[268..272].copy_from_slice(&[1, 2, 3, 4]);
        data[284..288].copy_from_slice(&[5, 6, 7, 8]);
        let expected = NvmNamespace {
            deallocate_granularity: 0x0403_0201,
            deallocate_alignment: 0x0807_0605,
        };
        assert_eq!(NvmNamespace::parse(&data), Ok(expected));
        assert_eq!(NvmNamespace::parse(&data[..4095]), Err(ShortData(4095)));
    }
}
