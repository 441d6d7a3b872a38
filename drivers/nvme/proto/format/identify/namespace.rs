// SPDX-License-Identifier: GPL-2.0

//! Identify Namespace for the NVM command set (CNS 00h).
//!
//! Source: NVM Command Set, Identify Namespace data structure. C structure: `struct nvme_id_ns`.

use super::ShortData;
use crate::format::layout::Reader;
use crate::format::property::Version;
use crate::format::sqe::Identify;

/// The Identify Namespace data structure, as far as a disk needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Namespace {
    /// Size in blocks (NSZE).
    pub size: u64,
    /// Capacity in blocks (NCAP); 0 if the namespace is not attached to the controller.
    pub capacity: u64,
    /// Blocks in use (NUSE).
    pub used: u64,
    /// Features (NSFEAT): see [`Self::has_own_atomicity`] and [`Self::performance`].
    pub features: u8,
    /// Index of the LBA format in use (FLBAS).
    pub format_index: u8,
    /// LBA format in use.
    pub format: LbaFormat,
    /// Type of the protection information (DPS); 0 for none.
    pub protection_type: u8,
    /// Deallocation features (DLFEAT): see [`Self::deallocated_reads_zero`].
    pub deallocation: u8,
    /// Blocks that are written atomically even if the power fails, zero-based (NAWUPF).
    pub atomic_write_zero_based: u16,
    /// Offset of the first boundary of atomic writes, in blocks (NABO).
    pub atomic_boundary_offset: u16,
    /// Distance of boundaries of atomic writes in blocks, zero-based (NABSPF); 0 for none.
    pub atomic_boundary_zero_based: u16,
    /// Distance of boundaries that an I/O should not cross, in blocks (NOIOB); 0 for none.
    pub io_boundary: u16,
    /// Preferred granularity of writes in blocks, zero-based (NPWG).
    pub write_granularity_zero_based: u16,
    /// Preferred granularity of deallocation in blocks, zero-based (NPDG).
    pub deallocate_granularity_zero_based: u16,
    /// Preferred alignment of deallocation in blocks, zero-based (NPDA).
    pub deallocate_alignment_zero_based: u16,
    /// Optimal size of writes in blocks, zero-based (NOWS); 0 if not reported.
    pub optimal_write_zero_based: u16,
    /// Whether the namespace is write protected (NSATTR).
    pub write_protected: bool,
    /// Namespace Globally Unique Identifier (NGUID); all zeroes if there is none.
    pub nguid: [u8; 16],
    /// IEEE Extended Unique Identifier (EUI64); all zeroes if there is none.
    pub eui64: [u8; 8],
}

/// An LBA format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LbaFormat {
    /// Metadata of a block in bytes (MS).
    pub metadata_size: u16,
    /// Data of a block as a power of two (LBADS).
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

/// Which performance hints of a namespace are valid (NSFEAT.OPTPERF).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PerformanceHints {
    /// Those of [`Namespace`].
    pub base: bool,
    /// Those of [`super::NvmNamespace`], and those of [`Namespace`] except
    /// [`Namespace::deallocate_granularity_zero_based`].
    pub extended: bool,
}

impl PerformanceHints {
    /// Returns whether any hint is valid.
    pub const fn any(self) -> bool {
        self.base || self.extended
    }
}

impl Namespace {
    const FORMATS: usize = 64;
    const FORMATS_SIZE: usize = Self::FORMATS * LbaFormat::SIZE;

    /// Decodes the data of an Identify command.
    ///
    /// # Errors
    ///
    /// [`ShortData`] if it is shorter than [`Identify::DATA_SIZE`].
    pub fn parse(data: &[u8]) -> Result<Self, ShortData> {
        let fields = Reader::<{ Identify::DATA_SIZE }>::new(data).ok_or(ShortData(data.len()))?;
        let format_index = format_index(fields.u8::<26>());
        let formats = fields.bytes::<128, { Self::FORMATS_SIZE }>();
        Ok(Self {
            size: fields.u64::<0>(),
            capacity: fields.u64::<8>(),
            used: fields.u64::<16>(),
            features: fields.u8::<24>(),
            format_index,
            format: format(&formats, format_index),
            protection_type: fields.u8::<29>() & 7,
            deallocation: fields.u8::<33>(),
            atomic_write_zero_based: fields.u16::<36>(),
            atomic_boundary_offset: fields.u16::<42>(),
            atomic_boundary_zero_based: fields.u16::<44>(),
            io_boundary: fields.u16::<46>(),
            write_granularity_zero_based: fields.u16::<64>(),
            deallocate_granularity_zero_based: fields.u16::<68>(),
            deallocate_alignment_zero_based: fields.u16::<70>(),
            optimal_write_zero_based: fields.u16::<72>(),
            write_protected: fields.u8::<99>() & 1 != 0,
            nguid: fields.bytes::<104, 16>(),
            eui64: fields.bytes::<120, 8>(),
        })
    }

    /// Returns whether the fields on atomic writes are valid.
    pub const fn has_own_atomicity(&self) -> bool {
        self.features & (1 << 1) != 0
    }

    /// Returns which hints are valid. Before NVMe 2.1 there was one bit for that. `version` is that
    /// of the controller.
    pub fn performance(&self, version: Version) -> PerformanceHints {
        PerformanceHints {
            base: self.features & (1 << 4) != 0,
            extended: self.features & (1 << 5) != 0 && version >= Version::new(2, 1, 0),
        }
    }

    /// Returns whether blocks that Write Zeroes deallocated read as zeroes.
    pub const fn deallocated_reads_zero(&self) -> bool {
        self.deallocation & 7 == 1 && self.deallocation & (1 << 3) != 0
    }
}

/// Returns the index of the LBA format: bits 3:0 of FLBAS, and bits 6:5 as the higher bits.
const fn format_index(formatted: u8) -> u8 {
    (formatted & 0x0f) | ((formatted & 0x60) >> 1)
}

/// Returns the LBA format of an index of 6 bits.
fn format(formats: &[u8; Namespace::FORMATS_SIZE], index: u8) -> LbaFormat {
    let mut entries = formats.chunks_exact(LbaFormat::SIZE);
    let entry = entries
        .nth(usize::from(index))
        .and_then(|entry| entry.first_chunk());
    LbaFormat::parse(*entry.unwrap_or(&[0; LbaFormat::SIZE]))
}

#[cfg(test)]
mod tests;
