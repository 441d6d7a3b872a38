// SPDX-License-Identifier: GPL-2.0

//! Size of a command's data, and how it is transferred.

use crate::format::identify::Controller;
use crate::format::sgl::Sgl;

/// Page size of memory regions, as a power of two.
pub const REGION_PAGE_SHIFT: u8 = 12;

/// Largest number of pages of a memory region: 1 MiB.
pub const MAX_REGION_PAGES: u32 = 256;

/// Largest number of segments of in-capsule data.
pub const MAX_INLINE_SEGMENTS: u32 = 4;

/// Sector size of the block layer, as a power of two.
pub const SECTOR_SHIFT: u8 = 9;

/// Returns the pages of data that a region holds, from the longest page list that the device
/// registers; `None` if it holds none.
///
/// That is one page less than the list, because data that begins within a page reaches into one
/// more.
pub fn region_pages(max_page_list_len: u32) -> Option<u32> {
    let pages = max_page_list_len.saturating_sub(1).min(MAX_REGION_PAGES);
    (pages > 0).then_some(pages)
}

/// Returns the largest transfer in sectors: what the target accepts (MDTS), a region holds, and the
/// length field of an SGL descriptor allows.
pub fn max_sectors(controller: &Controller, min_page_shift: u8, region_pages: u32) -> u32 {
    let target = match controller.max_transfer_shift {
        0 => u32::MAX,
        shift => sectors_of_pages(shift, min_page_shift),
    };
    region_sectors(region_pages)
        .min(target)
        .min(Sgl::MAX_KEYED_LEN >> SECTOR_SHIFT)
}

/// Returns the sectors that a region of this many pages holds.
pub fn region_sectors(region_pages: u32) -> u32 {
    region_pages.saturating_mul(1 << (REGION_PAGE_SHIFT - SECTOR_SHIFT))
}

/// Returns the largest number of segments of a command.
///
/// Each segment except the first begins at a page boundary, and each except the last ends at one.
/// So a region has one page for each.
pub fn max_segments(max_sectors: u32, region_pages: u32) -> u16 {
    let pages = max_sectors >> (REGION_PAGE_SHIFT - SECTOR_SHIFT);
    let segments = pages.saturating_add(1).min(region_pages);
    u16::try_from(segments).unwrap_or(u16::MAX)
}

/// Returns the sectors of 2^`shift` pages of a controller; [`u32::MAX`] if 32 bits cannot count
/// them.
pub(super) fn sectors_of_pages(shift: u8, min_page_shift: u8) -> u32 {
    let shift = u32::from(shift)
        .saturating_add(u32::from(min_page_shift))
        .saturating_sub(u32::from(SECTOR_SHIFT));
    1u32.checked_shl(shift).unwrap_or(u32::MAX)
}

/// Limit of in-capsule data, which writes of I/O queues may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InlineLimit {
    bytes: u32,
    segments: u32,
}

/// Limits of a target's I/O command capsules.
#[derive(Clone, Copy)]
pub struct CapsuleLimits {
    /// Size in units of 16 bytes (IOCCSZ).
    pub size: u32,
    /// Offset of data in units of 16 bytes (ICDOFF).
    pub data_offset: u16,
    /// SGLs may specify an offset (SGLS, bit 20).
    pub has_sgl_offset: bool,
}

impl InlineLimit {
    /// Unit of capsule sizes in bytes.
    const UNIT: u32 = 16;

    /// Size of a command in units.
    const COMMAND_UNITS: u32 = 4;

    /// Returns the limit of the capsules of an identified controller, see [`new`](Self::new).
    pub fn negotiate(controller: &Controller, max_send_entries: u32) -> Self {
        let capsule = CapsuleLimits {
            size: controller.io_command_capsule_size,
            data_offset: controller.in_capsule_data_offset,
            has_sgl_offset: controller.has_sgl_offset(),
        };
        Self::new(capsule, max_send_entries)
    }

    /// Returns the limit of a target's capsules, and of a device that gathers `max_send_entries`
    /// segments in a send. The command is one of these segments.
    ///
    /// Data must follow the command directly. If the target requires another offset (ICDOFF),
    /// capsules have no data.
    pub fn new(capsule: CapsuleLimits, max_send_entries: u32) -> Self {
        let units = capsule.size.saturating_sub(Self::COMMAND_UNITS);
        let room = units.saturating_mul(Self::UNIT);
        let segments = max_send_entries.saturating_sub(1).min(MAX_INLINE_SEGMENTS);
        let possible = capsule.has_sgl_offset && capsule.data_offset == 0;
        if !possible || room == 0 || segments == 0 {
            return Self::default();
        }
        Self {
            bytes: room,
            segments,
        }
    }

    /// Returns whether a capsule may have data of `bytes` in `segments` segments.
    #[inline]
    pub const fn allows(self, bytes: u32, segments: u32) -> bool {
        bytes <= self.bytes && segments <= self.segments
    }

    /// Returns the largest size in bytes; 0 if capsules have no data.
    pub const fn bytes(self) -> u32 {
        self.bytes
    }

    /// Returns the largest number of segments; 0 if capsules have no data.
    pub const fn segments(self) -> u32 {
        self.segments
    }
}

#[cfg(test)]
mod tests;
