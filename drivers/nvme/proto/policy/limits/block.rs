// SPDX-License-Identifier: GPL-2.0

//! What a disk of a namespace can do.

use super::transfer::{sectors_of_pages, SECTOR_SHIFT};
use crate::format::identify::{
    Controller, IndependentNamespace, Namespace, NvmController, NvmNamespace,
};
use crate::format::property::Version;
use crate::format::sqe::BlockCount;
use core::fmt;

/// What is the same for all disks of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerInputs<'a> {
    /// What the controller is.
    pub controller: &'a Controller,
    /// What it is for the NVM command set; the default where it does not say.
    pub nvm: NvmController,
    /// [`crate::format::property::Property::Version`].
    pub version: Version,
    /// [`crate::format::property::Capabilities::min_page_shift`].
    pub min_page_shift: u8,
    /// [`super::transfer::max_sectors`].
    pub max_sectors: u32,
    /// Largest block that the block layer can have, as a power of two.
    pub max_block_shift: u8,
}

/// What the disk's own namespace is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamespaceInputs<'a> {
    /// What the namespace is.
    pub namespace: &'a Namespace,
    /// What it is for the NVM command set; the default where its controller
    /// does not say.
    pub nvm: NvmNamespace,
    /// What it is for any; the default where its controller does not say.
    pub independent: IndependentNamespace,
    /// Its command set: [`crate::format::identify::NamespaceIds::command_set`].
    pub command_set: u8,
}

/// Limits and features of a disk. Sizes are in bytes, and a sector has 512.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockLimits {
    /// Size of a block, as a power of two.
    pub block_shift: u8,
    /// Size of the disk.
    pub capacity_sectors: u64,
    /// What is written as a whole or not at all: a power of two.
    pub physical_block_size: u32,
    /// Preferred least size of a write.
    pub io_min: u32,
    /// Preferred size of a write; 0 for unknown.
    pub io_opt: u32,
    /// Most sectors of a read or write.
    pub max_sectors: u32,
    /// A read or write should not cross a multiple of this, which is a power
    /// of two; 0 for none.
    pub chunk_sectors: u32,
    /// What can be discarded; `None` where nothing can.
    pub discard: Option<DiscardLimits>,
    /// Most sectors of a Write Zeroes; 0 where there is no such command.
    pub max_write_zeroes_sectors: u32,
    /// Whether blocks that Write Zeroes deallocates read as zeroes.
    pub write_zeroes_may_deallocate: bool,
    /// Whether writes are safe only once flushed, or with force unit access.
    pub write_cache: bool,
    /// Whether the medium rotates.
    pub rotational: bool,
    /// Whether nothing can be written.
    pub read_only: bool,
}

/// What can be discarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiscardLimits {
    /// Discards of less, or not aligned to it, may do nothing.
    pub granularity: u32,
    /// Most sectors, of all ranges.
    pub max_sectors: u32,
    /// Most ranges: 1 to 256.
    pub max_ranges: u16,
}

/// Why a namespace cannot be a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnsupportedNamespace {
    /// It has another command set than NVM.
    CommandSet(u8),
    /// It has no capacity, as one that is not attached to the controller.
    NotAttached,
    /// Its blocks are smaller than a sector, or larger than the block layer
    /// can have: the power of two.
    BlockShift(u8),
    /// It has so many bytes of metadata for each block, which would be lost.
    Metadata(u16),
    /// Its size, in blocks, is more than the block layer can have.
    Size(u64),
    /// A block is more than a command can transfer: the power of two.
    Transfer(u8),
}

impl BlockLimits {
    /// Size of a block, in bytes.
    #[must_use]
    pub fn block_size(&self) -> u32 {
        let size = 1_u32.checked_shl(self.block_shift.into());
        size.unwrap_or(u32::MAX)
    }

    /// The limits of the disk of a namespace.
    pub fn from_identify(
        controller: &ControllerInputs<'_>,
        inputs: &NamespaceInputs<'_>,
    ) -> Result<Self, UnsupportedNamespace> {
        let blocks = BlockSize::of(controller, inputs)?;
        let namespace = inputs.namespace;
        let write = WriteSizes::of(controller, namespace, blocks);
        let write_zeroes = write_zeroes_sectors(controller, blocks);
        Ok(Self {
            block_shift: blocks.shift,
            capacity_sectors: blocks.capacity_sectors(namespace.size)?,
            physical_block_size: write.physical,
            io_min: write.least,
            io_opt: write.optimal,
            max_sectors: blocks.transfer_sectors(controller.max_sectors)?,
            chunk_sectors: chunk_sectors(namespace, blocks),
            discard: discard(controller, inputs, blocks),
            max_write_zeroes_sectors: write_zeroes,
            write_zeroes_may_deallocate: write_zeroes > 0 && namespace.deallocated_reads_zero(),
            write_cache: controller.controller.has_write_cache()
                && !inputs.independent.no_write_cache,
            rotational: inputs.independent.rotational,
            read_only: namespace.write_protected,
        })
    }
}

/// The blocks of a namespace: of 512 bytes, and of 1 GiB at most.
#[derive(Clone, Copy)]
struct BlockSize {
    shift: u8,
    size: u32,
}

impl BlockSize {
    const MAX_SHIFT: u8 = 30;

    /// The most sectors that have byte offsets of 63 bits.
    const MAX_SECTORS: u64 = i64::MAX.unsigned_abs() >> SECTOR_SHIFT;

    fn of(
        controller: &ControllerInputs<'_>,
        inputs: &NamespaceInputs<'_>,
    ) -> Result<Self, UnsupportedNamespace> {
        let format = inputs.namespace.format;
        let shift = format.data_shift;
        if inputs.command_set != 0 {
            return Err(UnsupportedNamespace::CommandSet(inputs.command_set));
        }
        if inputs.namespace.capacity == 0 {
            return Err(UnsupportedNamespace::NotAttached);
        }
        if shift < SECTOR_SHIFT || shift > controller.max_block_shift.min(Self::MAX_SHIFT) {
            return Err(UnsupportedNamespace::BlockShift(shift));
        }
        if format.metadata_size != 0 {
            return Err(UnsupportedNamespace::Metadata(format.metadata_size));
        }
        Ok(Self {
            shift,
            size: 1u32.checked_shl(shift.into()).unwrap_or(u32::MAX),
        })
    }

    /// Sectors of a block.
    const fn sectors(self) -> u32 {
        self.size >> SECTOR_SHIFT
    }

    fn capacity_sectors(self, blocks: u64) -> Result<u64, UnsupportedNamespace> {
        blocks
            .checked_mul(u64::from(self.sectors()))
            .filter(|sectors| *sectors <= Self::MAX_SECTORS)
            .ok_or(UnsupportedNamespace::Size(blocks))
    }

    /// What of a command's most sectors are whole blocks.
    fn transfer_sectors(self, most: u32) -> Result<u32, UnsupportedNamespace> {
        match self.whole(most) {
            0 => Err(UnsupportedNamespace::Transfer(self.shift)),
            sectors => Ok(sectors),
        }
    }

    /// `sectors`, less those of a block that is not whole.
    const fn whole(self, sectors: u32) -> u32 {
        // The size is a power of two.
        sectors & !self.sectors().wrapping_sub(1)
    }

    /// Sectors of `blocks`, as far as they can be counted.
    fn limit_sectors(self, blocks: u64) -> u32 {
        let sectors = blocks.saturating_mul(u64::from(self.sectors()));
        self.whole(u32::try_from(sectors).unwrap_or(u32::MAX))
    }

    /// Bytes of `blocks`, or of one where they cannot be counted.
    fn bytes(self, blocks: u32) -> u32 {
        self.size.checked_mul(blocks).unwrap_or(self.size)
    }
}

/// Takes a count that is stored less one.
fn from_zero_based(count: u16) -> u32 {
    u32::from(count).saturating_add(1)
}

/// Sizes in bytes that writes should have.
struct WriteSizes {
    physical: u32,
    least: u32,
    optimal: u32,
}

impl WriteSizes {
    fn of(controller: &ControllerInputs<'_>, namespace: &Namespace, blocks: BlockSize) -> Self {
        let mut least = blocks.size;
        let mut optimal = 0;
        if namespace.performance(controller.version).any() {
            least = blocks.bytes(from_zero_based(namespace.write_granularity_zero_based));
            if namespace.optimal_write_zero_based != 0 {
                optimal = blocks.bytes(from_zero_based(namespace.optimal_write_zero_based));
            }
        }
        // File systems take it that a physical block is written as a whole.
        let physical = least.min(Self::atomic(namespace, blocks));
        Self {
            physical: power_of_two_within(physical),
            least,
            optimal,
        }
    }

    /// What is written as a whole if the power fails. The controller's own
    /// value is not for namespaces of another format; boundaries at an offset
    /// are nothing that the block layer knows.
    fn atomic(namespace: &Namespace, blocks: BlockSize) -> u32 {
        if namespace.has_own_atomicity() && namespace.atomic_boundary_offset == 0 {
            blocks.bytes(from_zero_based(namespace.atomic_write_zero_based))
        } else {
            blocks.size
        }
    }
}

/// The greatest power of two that is not more than `size`, which is not 0.
fn power_of_two_within(size: u32) -> u32 {
    1u32.checked_shl(size.checked_ilog2().unwrap_or(0))
        .unwrap_or(1)
}

/// A boundary is for the block layer only if it is a power of two.
fn chunk_sectors(namespace: &Namespace, blocks: BlockSize) -> u32 {
    let sectors = u32::from(namespace.io_boundary).checked_mul(blocks.sectors());
    sectors
        .filter(|sectors| sectors.is_power_of_two())
        .unwrap_or(0)
}

/// The size of a Write Zeroes, where it has no limit of its own, is taken to
/// have that of a write. Its blocks are counted in 16 bits.
fn write_zeroes_sectors(inputs: &ControllerInputs<'_>, blocks: BlockSize) -> u32 {
    if !inputs.controller.has_write_zeroes() {
        return 0;
    }
    let most = match inputs.nvm.write_zeroes_shift {
        0 => inputs.max_sectors,
        shift => sectors_of_pages(shift, inputs.min_page_shift),
    };
    blocks.whole(most.min(blocks.limit_sectors(BlockCount::MAX.into())))
}

fn discard(
    controller: &ControllerInputs<'_>,
    inputs: &NamespaceInputs<'_>,
    blocks: BlockSize,
) -> Option<DiscardLimits> {
    /// What a limit of 0 stands for.
    const NONE: u64 = u64::MAX;
    if !controller.controller.has_dataset_management() {
        return None;
    }
    let nvm = &controller.nvm;
    let range = match nvm.dataset_management_range_blocks {
        0 => NONE,
        most => u64::from(most),
    };
    let all = match nvm.dataset_management_blocks {
        0 => NONE,
        most => most,
    };
    let max_ranges = match nvm.dataset_management_ranges {
        0 => 256,
        most => u16::from(most),
    };
    // A discard may be all in one range.
    let max_sectors = blocks.limit_sectors(range.min(all));
    let granularity = discard_granularity(controller.version, inputs, blocks);
    Some(DiscardLimits {
        granularity,
        max_sectors,
        max_ranges,
    })
}

/// The block layer has one number for granularity and alignment, so it gets
/// the greater one. Where a namespace tells one of them twice, that which can
/// be larger counts.
fn discard_granularity(version: Version, inputs: &NamespaceInputs<'_>, blocks: BlockSize) -> u32 {
    let namespace = inputs.namespace;
    let hints = namespace.performance(version);
    let granularity = match inputs.nvm.deallocate_granularity {
        large if hints.extended && large != 0 => large,
        _ if hints.base => from_zero_based(namespace.deallocate_granularity_zero_based),
        _ => 1,
    };
    let alignment = match inputs.nvm.deallocate_alignment {
        large if hints.extended && large != 0 => large,
        _ if hints.any() => from_zero_based(namespace.deallocate_alignment_zero_based),
        _ => 1,
    };
    blocks.bytes(granularity.max(alignment))
}

impl fmt::Display for UnsupportedNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandSet(set) => write!(f, "command set {set} is not supported"),
            Self::NotAttached => f.write_str("not attached to the controller"),
            Self::BlockShift(shift) => write!(f, "blocks of 2^{shift} bytes are not supported"),
            Self::Metadata(size) => write!(f, "{size} bytes of metadata a block are not supported"),
            Self::Size(blocks) => write!(f, "{blocks} blocks are more than a disk can have"),
            Self::Transfer(shift) => write!(f, "a block of 2^{shift} bytes exceeds a transfer"),
        }
    }
}

#[cfg(test)]
mod tests;
