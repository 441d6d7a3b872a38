// SPDX-License-Identifier: GPL-2.0

//! Limits and features of the disk of a namespace.

use super::transfer::{sectors_of_pages, SECTOR_SHIFT};
use crate::format::identify::{
    Controller, IndependentNamespace, Namespace, NvmController, NvmNamespace,
};
use crate::format::property::Version;
use crate::format::sqe::{BlockCount, Protection};
use core::fmt;

/// Input that is the same for all disks of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerInputs<'a> {
    /// Identify Controller.
    pub controller: &'a Controller,
    /// Identify Controller for the NVM command set; the default if the controller does not support
    /// it.
    pub nvm: NvmController,
    /// [`crate::format::property::Property::Version`].
    pub version: Version,
    /// [`crate::format::property::Capabilities::min_page_shift`].
    pub min_page_shift: u8,
    /// Largest transfer in sectors: [`super::transfer::max_sectors`].
    pub max_sectors: u32,
    /// Largest block that the block layer supports, as a power of two.
    pub max_block_shift: u8,
}

/// Input from the namespace of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamespaceInputs<'a> {
    /// Identify Namespace.
    pub namespace: &'a Namespace,
    /// Identify Namespace for the NVM command set; the default if the controller does not support
    /// it.
    pub nvm: NvmNamespace,
    /// I/O Command Set Independent Identify Namespace; the default if the controller does not
    /// support it.
    pub independent: IndependentNamespace,
    /// I/O command set: [`crate::format::identify::NamespaceIds::command_set`].
    pub command_set: u8,
}

/// Limits and features of a disk. A sector has 512 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockLimits {
    /// Size of a block, as a power of two.
    pub block_shift: u8,
    /// Protection information of a block.
    pub protection: Protection,
    /// Size of the disk in sectors.
    pub capacity_sectors: u64,
    /// Size in bytes that is written atomically; a power of two.
    pub physical_block_size: u32,
    /// Preferred minimum size of a write, in bytes.
    pub io_min: u32,
    /// Preferred size of a write, in bytes; 0 if not reported.
    pub io_opt: u32,
    /// Largest read or write, in sectors.
    pub max_sectors: u32,
    /// Reads and writes should not cross a multiple of this number of sectors, which is a power of
    /// two; 0 for no boundary.
    pub chunk_sectors: u32,
    /// Limits of atomic writes.
    pub atomic_writes: AtomicWriteLimits,
    /// Limits of discards; `None` if they are not supported.
    pub discard: Option<DiscardLimits>,
    /// Largest Write Zeroes, in sectors; 0 if the command is not supported.
    pub max_write_zeroes_sectors: u32,
    /// Whether blocks that Write Zeroes deallocates read as zeroes.
    pub write_zeroes_may_deallocate: bool,
    /// Whether the disk has a volatile write cache: only a flush or force unit access makes writes
    /// durable.
    pub write_cache: bool,
    /// Whether the medium rotates.
    pub rotational: bool,
    /// Whether the namespace is write protected.
    pub read_only: bool,
}

/// Limits of writes that stay whole if the power fails, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicWriteLimits {
    /// Largest atomic write: at least a block.
    pub max: u32,
    /// An atomic write must not cross a multiple of this power of two; 0 for no boundary.
    pub boundary: u32,
}

/// Limits of discards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiscardLimits {
    /// Granularity and alignment in bytes; the controller may ignore smaller or unaligned parts.
    pub granularity: u32,
    /// Largest discard in sectors, in all ranges together.
    pub max_sectors: u32,
    /// Largest number of ranges: 1 to 256.
    pub max_ranges: u16,
}

/// Reason why a namespace cannot be a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnsupportedNamespace {
    /// The command set is not NVM.
    CommandSet(u8),
    /// The namespace has no capacity, such as one that is not attached to the controller.
    NotAttached,
    /// Blocks are smaller than a sector, or larger than the block layer supports; their size as a
    /// power of two.
    BlockShift(u8),
    /// Blocks have metadata that the controller does not insert and strip, so it would be lost; its size in bytes per block.
    Metadata(u16),
    /// The block layer does not support this number of blocks.
    Size(u64),
    /// A block is larger than a transfer; its size as a power of two.
    Transfer(u8),
}

impl BlockLimits {
    /// Returns the size of a block in bytes.
    pub fn block_size(&self) -> u32 {
        let size = 1_u32.checked_shl(self.block_shift.into());
        size.unwrap_or(u32::MAX)
    }

    /// Returns the limits of the disk of a namespace.
    ///
    /// # Errors
    ///
    /// [`UnsupportedNamespace`].
    pub fn from_identify(
        controller: &ControllerInputs<'_>,
        inputs: &NamespaceInputs<'_>,
    ) -> Result<Self, UnsupportedNamespace> {
        let blocks = BlockSize::of(controller, inputs)?;
        let namespace = inputs.namespace;
        let chunk_sectors = chunk_sectors(namespace, blocks);
        let atomic_writes = AtomicWriteLimits::of(namespace, blocks, chunk_sectors);
        let write = WriteSizes::of(controller, namespace, blocks, atomic_writes);
        let write_zeroes = write_zeroes_sectors(controller, blocks);
        Ok(Self {
            block_shift: blocks.shift,
            protection: protection(controller, inputs)?,
            capacity_sectors: blocks.capacity_sectors(namespace.size)?,
            physical_block_size: write.physical,
            io_min: write.least,
            io_opt: write.optimal,
            max_sectors: blocks.transfer_sectors(controller.max_sectors)?,
            chunk_sectors,
            atomic_writes,
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

/// Size of a block: 512 bytes to 1 GiB.
#[derive(Clone, Copy)]
struct BlockSize {
    shift: u8,
    size: u32,
}

impl BlockSize {
    const MAX_SHIFT: u8 = 30;

    /// Largest number of sectors whose byte offsets have 63 bits.
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
        Ok(Self {
            shift,
            size: 1u32.checked_shl(shift.into()).unwrap_or(u32::MAX),
        })
    }

    /// Returns the sectors of a block.
    const fn sectors(self) -> u32 {
        self.size >> SECTOR_SHIFT
    }

    fn capacity_sectors(self, blocks: u64) -> Result<u64, UnsupportedNamespace> {
        blocks
            .checked_mul(u64::from(self.sectors()))
            .filter(|sectors| *sectors <= Self::MAX_SECTORS)
            .ok_or(UnsupportedNamespace::Size(blocks))
    }

    /// Returns the largest transfer of whole blocks, of at most `most` sectors.
    fn transfer_sectors(self, most: u32) -> Result<u32, UnsupportedNamespace> {
        match self.whole(most) {
            0 => Err(UnsupportedNamespace::Transfer(self.shift)),
            sectors => Ok(sectors),
        }
    }

    /// Rounds `sectors` down to whole blocks.
    const fn whole(self, sectors: u32) -> u32 {
        // The size is a power of two.
        sectors & !self.sectors().wrapping_sub(1)
    }

    /// Returns the sectors of `blocks`, at most those of whole blocks that 32 bits can count.
    fn limit_sectors(self, blocks: u64) -> u32 {
        let sectors = blocks.saturating_mul(u64::from(self.sectors()));
        self.whole(u32::try_from(sectors).unwrap_or(u32::MAX))
    }

    /// Returns the bytes of `blocks`; those of one block if 32 bits cannot count them.
    fn bytes(self, blocks: u32) -> u32 {
        self.size.checked_mul(blocks).unwrap_or(self.size)
    }
}

/// Returns the protection information of blocks. It must be all of their metadata.
fn protection(
    controller: &ControllerInputs<'_>,
    inputs: &NamespaceInputs<'_>,
) -> Result<Protection, UnsupportedNamespace> {
    let is_simple =
        !controller.controller.has_extended_formats() || inputs.nvm.has_simple_protection();
    let namespace = inputs.namespace;
    match (namespace.format.metadata_size, namespace.protection_type) {
        (0, _) => Ok(Protection::None),
        (8, 1 | 2) if is_simple => Ok(Protection::ReferenceTag),
        (8, 3) if is_simple => Ok(Protection::Guard),
        (size, _) => Err(UnsupportedNamespace::Metadata(size)),
    }
}

/// Converts a zero-based count.
fn from_zero_based(count: u16) -> u32 {
    u32::from(count).saturating_add(1)
}

/// Preferred sizes of writes in bytes.
struct WriteSizes {
    physical: u32,
    least: u32,
    optimal: u32,
}

impl WriteSizes {
    fn of(
        controller: &ControllerInputs<'_>,
        namespace: &Namespace,
        blocks: BlockSize,
        atomic_writes: AtomicWriteLimits,
    ) -> Self {
        let mut least = blocks.size;
        let mut optimal = 0;
        if namespace.performance(controller.version).any() {
            least = blocks.bytes(from_zero_based(namespace.write_granularity_zero_based));
            if namespace.optimal_write_zero_based != 0 {
                optimal = blocks.bytes(from_zero_based(namespace.optimal_write_zero_based));
            }
        }
        // File systems rely on a physical block being written atomically.
        let physical = least.min(atomic_writes.max);
        Self {
            physical: power_of_two_within(physical),
            least,
            optimal,
        }
    }
}

impl AtomicWriteLimits {
    /// Returns the limits of a namespace: one block, unless it reports more.
    ///
    /// The value of the controller (AWUPF) is not used, because it need not hold for the LBA format
    /// of this namespace. Nor are boundaries at an offset, or at a distance that is not a power of
    /// two: the block layer does not support them.
    fn of(namespace: &Namespace, blocks: BlockSize, chunk_sectors: u32) -> Self {
        let one_block = Self {
            max: blocks.size,
            boundary: 0,
        };
        if !namespace.has_own_atomicity() || namespace.atomic_boundary_offset != 0 {
            return one_block;
        }
        let max = blocks.bytes(from_zero_based(namespace.atomic_write_zero_based));
        let boundary = match namespace.atomic_boundary_zero_based {
            0 => 0,
            distance => blocks.bytes(from_zero_based(distance)),
        };
        if boundary != 0 && (!boundary.is_power_of_two() || boundary < max) {
            return one_block;
        }
        // The block layer splits requests there.
        let max = match chunk_sectors.saturating_mul(1 << SECTOR_SHIFT) {
            0 => max,
            chunk => max.min(chunk),
        };
        Self { max, boundary }
    }
}

/// Returns the largest power of two that does not exceed `size`, which is not 0.
fn power_of_two_within(size: u32) -> u32 {
    1u32.checked_shl(size.checked_ilog2().unwrap_or(0))
        .unwrap_or(1)
}

/// Returns the boundary of I/O in sectors; 0 if there is none, or if it is not a power of two,
/// which the block layer requires.
fn chunk_sectors(namespace: &Namespace, blocks: BlockSize) -> u32 {
    let sectors = u32::from(namespace.io_boundary).checked_mul(blocks.sectors());
    sectors
        .filter(|sectors| sectors.is_power_of_two())
        .unwrap_or(0)
}

/// Returns the largest Write Zeroes in sectors.
///
/// Without a limit of its own (WZSL) it has that of a write. Its blocks are counted in 16 bits.
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
    /// Stands for a limit of 0, which is no limit.
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
    // A discard may have a single range.
    let max_sectors = blocks.limit_sectors(range.min(all));
    let granularity = discard_granularity(controller.version, inputs, blocks);
    Some(DiscardLimits {
        granularity,
        max_sectors,
        max_ranges,
    })
}

/// Returns the granularity of discards in bytes.
///
/// The block layer has one value for granularity and alignment, and gets the larger one. If a
/// namespace reports one of them twice, the wider field applies (NPDGL, NPDAL).
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
            Self::Metadata(size) => {
                write!(f, "{size} bytes of metadata per block are not supported")
            }
            Self::Size(blocks) => write!(f, "{blocks} blocks exceed the largest disk"),
            Self::Transfer(shift) => {
                write!(f, "a block of 2^{shift} bytes exceeds the largest transfer")
            }
        }
    }
}

#[cfg(test)]
mod tests;
