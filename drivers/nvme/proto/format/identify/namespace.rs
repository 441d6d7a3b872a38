// SPDX-License-Identifier: GPL-2.0

//! Identify Namespace.

use super::ShortData;
use crate::format::layout::Reader;
use crate::format::property::Version;
use crate::format::sqe::Identify;

/// What a namespace is, as far as a disk needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Namespace {
    /// Size in blocks.
    pub size: u64,
    /// Capacity in blocks; 0 where the namespace is not attached.
    pub capacity: u64,
    /// Blocks allocated.
    pub used: u64,
    /// Features: see [`Self::has_own_atomicity`] and [`Self::performance`].
    pub features: u8,
    /// How many formats there are, less one.
    pub formats_zero_based: u8,
    /// The format in use.
    pub format: LbaFormat,
    /// Number of the format in use.
    pub format_index: u8,
    /// Whether metadata is transferred with the data of each block.
    pub extended_blocks: bool,
    /// Metadata capabilities.
    pub metadata_capabilities: u8,
    /// Protection information capabilities.
    pub protection_capabilities: u8,
    /// Protection information in use: 0 for none.
    pub protection: u8,
    /// Whether other controllers may have it too.
    pub shared: bool,
    /// Deallocation features: see [`Self::deallocated_reads_zero`].
    pub deallocation: u8,
    /// Blocks that are written as a whole if the power fails, less one.
    pub atomic_write_zero_based: u16,
    /// Where the first boundary of atomic writes is.
    pub atomic_boundary_offset: u16,
    /// Blocks between boundaries that an I/O should not cross; 0 for none.
    pub io_boundary: u16,
    /// Preferred granularity of writes, in blocks less one.
    pub write_granularity_zero_based: u16,
    /// Preferred alignment of writes, in blocks less one.
    pub write_alignment_zero_based: u16,
    /// Preferred granularity of deallocation, in blocks less one.
    pub deallocate_granularity_zero_based: u16,
    /// Preferred alignment of deallocation, in blocks less one.
    pub deallocate_alignment_zero_based: u16,
    /// Optimal size of writes, in blocks less one; 0 for unknown.
    pub optimal_write_zero_based: u16,
    /// Asymmetric access group.
    pub access_group: u32,
    /// Whether it is write protected.
    pub write_protected: bool,
    /// Globally unique identifier; all zeroes for none.
    pub nguid: [u8; 16],
    /// IEEE extended unique identifier; all zeroes for none.
    pub eui64: [u8; 8],
}

/// How the blocks of a namespace are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LbaFormat {
    /// Bytes of metadata that each block has.
    pub metadata_size: u16,
    /// Size of a block's data, as a power of two.
    pub data_shift: u8,
}

impl LbaFormat {
    const SIZE: usize = 4;

    fn parse(bytes: [u8; Self::SIZE]) -> Self {
        let fields = Reader::over(&bytes);
        Self {
            metadata_size: fields.u16::<0>(),
            data_shift: fields.u8::<2>(),
        }
    }
}

/// Which hints for good performance a namespace gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PerformanceHints {
    /// Those of [`Namespace`] alone.
    pub base: bool,
    /// Those of [`super::NvmNamespace`] too, and of [`Namespace`] all but
    /// [`Namespace::deallocate_granularity_zero_based`].
    pub extended: bool,
}

impl PerformanceHints {
    /// Whether there are hints.
    #[must_use]
    pub const fn any(self) -> bool {
        self.base || self.extended
    }
}

impl Namespace {
    const FORMATS: usize = 64;
    const FORMATS_SIZE: usize = Self::FORMATS * LbaFormat::SIZE;

    /// Reads what an Identify Namespace command returned.
    pub fn parse(data: &[u8]) -> Result<Self, ShortData> {
        let fields = Reader::<{ Identify::DATA_SIZE }>::new(data).ok_or(ShortData(data.len()))?;
        let formatted = fields.u8::<26>();
        let format_index = format_index(formatted);
        let formats = fields.bytes::<128, { Self::FORMATS_SIZE }>();
        Ok(Self {
            size: fields.u64::<0>(),
            capacity: fields.u64::<8>(),
            used: fields.u64::<16>(),
            features: fields.u8::<24>(),
            formats_zero_based: fields.u8::<25>(),
            format: format(&formats, format_index),
            format_index,
            extended_blocks: formatted & (1 << 4) != 0,
            metadata_capabilities: fields.u8::<27>(),
            protection_capabilities: fields.u8::<28>(),
            protection: fields.u8::<29>() & 7,
            shared: fields.u8::<30>() & 1 != 0,
            deallocation: fields.u8::<33>(),
            atomic_write_zero_based: fields.u16::<36>(),
            atomic_boundary_offset: fields.u16::<42>(),
            io_boundary: fields.u16::<46>(),
            write_granularity_zero_based: fields.u16::<64>(),
            write_alignment_zero_based: fields.u16::<66>(),
            deallocate_granularity_zero_based: fields.u16::<68>(),
            deallocate_alignment_zero_based: fields.u16::<70>(),
            optimal_write_zero_based: fields.u16::<72>(),
            access_group: fields.u32::<92>(),
            write_protected: fields.u8::<99>() & 1 != 0,
            nguid: fields.bytes::<104, 16>(),
            eui64: fields.bytes::<120, 8>(),
        })
    }

    /// Whether [`Self::atomic_write_zero_based`] is to be used.
    #[must_use]
    pub const fn has_own_atomicity(&self) -> bool {
        self.features & (1 << 1) != 0
    }

    /// Which hints it gives. Before version 2.1 there was one bit to say so.
    #[must_use]
    pub fn performance(&self, version: Version) -> PerformanceHints {
        PerformanceHints {
            base: self.features & (1 << 4) != 0,
            extended: self.features & (1 << 5) != 0 && version >= Version::new(2, 1, 0),
        }
    }

    /// Whether blocks that Write Zeroes deallocates read as zeroes.
    #[must_use]
    pub const fn deallocated_reads_zero(&self) -> bool {
        self.deallocation & 7 == 1 && self.deallocation & (1 << 3) != 0
    }
}

/// Number of the format: four bits, and two more that came later.
const fn format_index(formatted: u8) -> u8 {
    (formatted & 0x0f) | ((formatted & 0x60) >> 1)
}

/// The format of a number below 64, which is all that six bits can say.
fn format(formats: &[u8; Namespace::FORMATS_SIZE], index: u8) -> LbaFormat {
    let mut entries = formats.chunks_exact(LbaFormat::SIZE);
    let entry = entries
        .nth(usize::from(index))
        .and_then(|entry| entry.first_chunk());
    LbaFormat::parse(*entry.unwrap_or(&[0; LbaFormat::SIZE]))
}

#[cfg(test)]
mod tests;
