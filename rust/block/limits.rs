// SPDX-License-Identifier: GPL-2.0

//! Limits and features of a disk.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use super::SECTOR_SIZE;
use crate::{
    bindings,
    sync::Msecs, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// Limits and features of a disk, for [`DiskConfig`](super::DiskConfig).
///
/// 0 selects the default of the block layer, or disables the operation that the limit belongs to.
/// Sectors have 512 bytes, independent of the logical block size. C: `struct queue_limits`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Logical block size, in bytes: a power of two, at least 512 (the default).
    pub logical_block_size: u32,
    /// Physical block size, in bytes: the smallest unit written without a read-modify-write. A
    /// power of two; the default is the logical block size.
    pub physical_block_size: u32,
    /// Minimum preferred I/O size, in bytes.
    pub io_min: u32,
    /// Optimal I/O size, in bytes; 0 if there is none.
    pub io_opt: u32,
    /// Maximum size of a read or write, in sectors: at least one page and one logical block.
    pub max_hw_sectors: u32,
    /// Maximum number of segments of a request; default 128.
    pub max_segments: u16,
    /// Maximum size of a segment, in bytes: at least one page. The default is 64 KiB, or unlimited
    /// if `virt_boundary_mask` is set.
    pub max_segment_size: u32,
    /// Power of two minus 1: all segments but the first start, and all but the last end, at a
    /// multiple of that power.
    pub virt_boundary_mask: usize,
    /// Power of two minus 1, less than a page: required alignment of the memory. Default 511.
    pub dma_alignment: u32,
    /// Maximum size of a discard, in sectors; 0 disables discards.
    pub max_discard_sectors: u32,
    /// Granularity of discards, in bytes.
    pub discard_granularity: u32,
    /// Maximum number of ranges of a discard; default 1.
    pub max_discard_segments: u16,
    /// Maximum size of a write-zeroes request, in sectors; 0 disables these requests.
    pub max_write_zeroes_sectors: u32,
    /// Zeroing deallocates blocks that then read as zeroes, unless a request forbids it.
    pub write_zeroes_unmap: bool,
    /// Maximum size of an atomic write, in bytes: at least one logical block, and at most
    /// `chunk_sectors`; 0 disables atomic writes.
    pub atomic_write_max: u32,
    /// Atomic writes do not cross multiples of this number of bytes, which is 0 or a power of two
    /// not below `atomic_write_max`.
    pub atomic_write_boundary: u32,
    /// Requests do not cross multiples of this number of sectors.
    pub chunk_sectors: u32,
    /// The device has a volatile write cache, so it needs flushes.
    pub write_cache: bool,
    /// The device supports writes with FUA.
    pub fua: bool,
    /// The device is rotational.
    pub rotational: bool,
    /// Timeout of requests; `None` selects that of the tag set.
    pub timeout: Option<Msecs>,
}

impl Limits {
    /// Returns `raw` with these limits applied.
    ///
    /// # Errors
    ///
    /// `EINVAL` if a limit is inconsistent. The numbers may come from a device, so this checks what
    /// C either trusts the driver to have checked or warns about as a driver bug.
    pub(super) fn to_raw(self, raw: bindings::queue_limits) -> Result<bindings::queue_limits> {
        let block_sectors = self.logical_block_size / SECTOR_SIZE;
        let page = PAGE_SIZE as u32;
        let sane = (self.max_hw_sectors == 0
            || self.max_hw_sectors >= block_sectors.max(page / SECTOR_SIZE))
            && (self.max_segment_size == 0 || self.max_segment_size >= page)
            && is_mask(self.virt_boundary_mask)
            && is_mask(self.dma_alignment as usize)
            && self.dma_alignment < page
            && self.has_sane_atomic_writes();

        if !sane {
            return Err(EINVAL);
        }
        Ok(bindings::queue_limits {
            features: self.features(raw.features),
            logical_block_size: self.logical_block_size,
            physical_block_size: self.physical_block_size,
            io_min: self.io_min,
            io_opt: self.io_opt,
            max_hw_sectors: self.max_hw_sectors,
            max_segments: self.max_segments,
            max_segment_size: self.max_segment_size,
            virt_boundary_mask: self.virt_boundary_mask,
            dma_alignment: self.dma_alignment,
            max_hw_discard_sectors: self.max_discard_sectors,
            discard_granularity: self.discard_granularity,
            max_discard_segments: self.max_discard_segments,
            max_write_zeroes_sectors: self.max_write_zeroes_sectors,
            max_hw_wzeroes_unmap_sectors: match self.write_zeroes_unmap {
                true => self.max_write_zeroes_sectors,
                false => 0,
            },
            atomic_write_hw_max: self.atomic_write_max,
            atomic_write_hw_boundary: self.atomic_write_boundary,
            atomic_write_hw_unit_min: self.block_size(),
            atomic_write_hw_unit_max: power_of_two_within(self.atomic_write_max),
            chunk_sectors: self.chunk_sectors,
            ..raw
        })
    }

    /// Returns the logical block size, in bytes.
    fn block_size(&self) -> u32 {
        self.logical_block_size.max(SECTOR_SIZE)
    }

    fn has_sane_atomic_writes(&self) -> bool {
        let (max, boundary) = (self.atomic_write_max, self.atomic_write_boundary);
        max == 0
            || max >= self.block_size()
                && (self.chunk_sectors == 0 || max / SECTOR_SIZE <= self.chunk_sectors)
                && (boundary == 0 || boundary.is_power_of_two() && boundary >= max)
    }

    /// Returns `others` with the features of this structure set or cleared.
    fn features(&self, others: bindings::blk_features_t) -> bindings::blk_features_t {
        [
            (self.write_cache, bindings::rrdma_BLK_FEAT_WRITE_CACHE),
            (self.fua, bindings::rrdma_BLK_FEAT_FUA),
            (self.rotational, bindings::rrdma_BLK_FEAT_ROTATIONAL),
            (
                self.atomic_write_max != 0,
                bindings::rrdma_BLK_FEAT_ATOMIC_WRITES,
            ),
        ]
        .into_iter()
        .fold(others, |features, (set, feature)| match set {
            true => features | feature,
            false => features & !feature,
        })
    }
}

/// Returns the largest power of two that does not exceed `size`; 0 for 0.
fn power_of_two_within(size: u32) -> u32 {
    size.checked_ilog2().map_or(0, |shift| 1 << shift)
}

/// Returns whether `mask` is 0 or a power of two minus 1.
fn is_mask(mask: usize) -> bool {
    mask & mask.wrapping_add(1) == 0
}
