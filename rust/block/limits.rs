// SPDX-License-Identifier: GPL-2.0

//! What a disk can do.
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

/// What a disk can do, for [`DiskConfig`](super::DiskConfig).
///
/// 0 stands for the block layer's default, or where it is a number of things that the
/// disk may be asked for, for none of them. Sectors are of 512 bytes whatever the logical
/// block size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The smallest unit that can be addressed, in bytes: a power of two from 512, the
    /// default.
    pub logical_block_size: u32,
    /// The smallest unit that is written without reading, in bytes: a power of two, by
    /// default the logical block size.
    pub physical_block_size: u32,
    /// The smallest preferred size of a request, in bytes.
    pub io_min: u32,
    /// The preferred size of a request, in bytes; 0 if there is none.
    pub io_opt: u32,
    /// The largest read or write, in sectors: at least a page and a logical block.
    pub max_hw_sectors: u32,
    /// The largest number of pieces of memory of a request; 128 by default.
    pub max_segments: u16,
    /// The largest piece of memory of a request, in bytes: at least a page. 64 KiB by
    /// default, without limit if `virt_boundary_mask` is not 0.
    pub max_segment_size: u32,
    /// A power of two less one: all pieces of memory but the first start, and all but the
    /// last end, at a multiple of the power.
    pub virt_boundary_mask: usize,
    /// A power of two less one, up to a page: memory is aligned to the power. 511 by
    /// default.
    pub dma_alignment: u32,
    /// The largest discard, in sectors; 0 if there are no discards.
    pub max_discard_sectors: u32,
    /// The unit that is really freed by a discard, in bytes.
    pub discard_granularity: u32,
    /// The largest number of ranges of a discard; 1 by default.
    pub max_discard_segments: u16,
    /// The most zeroes to be written by one request, in sectors; 0 if there is no such
    /// request.
    pub max_write_zeroes_sectors: u32,
    /// Requests do not cross multiples of so many sectors.
    pub chunk_sectors: u32,
    /// There is a volatile write cache: flushes are needed.
    pub write_cache: bool,
    /// Writes past the write cache are possible.
    pub fua: bool,
    /// Seeks cost time.
    pub rotational: bool,
    /// Data must not change while it is written.
    pub stable_writes: bool,
    /// The time that a request has; by default that of the tag set.
    pub timeout: Option<Msecs>,
}

impl Limits {
    /// The limits for C, in place of those in `raw`, where there are more.
    ///
    /// # Errors
    ///
    /// `EINVAL` if they make no sense: what is checked here is what C warns of as a bug
    /// of the driver, or trusts it in, as the numbers may well be those of a device.
    pub(super) fn to_raw(self, raw: bindings::queue_limits) -> Result<bindings::queue_limits> {
        let block_sectors = self.logical_block_size / SECTOR_SIZE;
        let page = PAGE_SIZE as u32;
        let sane = (self.max_hw_sectors == 0
            || self.max_hw_sectors >= block_sectors.max(page / SECTOR_SIZE))
            && (self.max_segment_size == 0 || self.max_segment_size >= page)
            && is_mask(self.virt_boundary_mask)
            && is_mask(self.dma_alignment as usize)
            && self.dma_alignment < page;

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
            chunk_sectors: self.chunk_sectors,
            ..raw
        })
    }

    /// The features that are ours to set, and what else there is.
    fn features(&self, others: bindings::blk_features_t) -> bindings::blk_features_t {
        [
            (self.write_cache, bindings::rrdma_BLK_FEAT_WRITE_CACHE),
            (self.fua, bindings::rrdma_BLK_FEAT_FUA),
            (self.rotational, bindings::rrdma_BLK_FEAT_ROTATIONAL),
            (self.stable_writes, bindings::rrdma_BLK_FEAT_STABLE_WRITES),
        ]
        .into_iter()
        .fold(others, |features, (set, feature)| match set {
            true => features | feature,
            false => features & !feature,
        })
    }
}

/// Whether it is 0 or a power of two less one.
fn is_mask(mask: usize) -> bool {
    mask & mask.wrapping_add(1) == 0
}
