// SPDX-License-Identifier: GPL-2.0

//! How much data one command can have, and how it travels.

use crate::format::identify::Controller;
use crate::format::sgl::Sgl;

/// Size of the pages that memory regions are made of, as a power of two.
pub const REGION_PAGE_SHIFT: u8 = 12;

/// Most pages of a memory region: 1 MiB.
pub const MAX_REGION_PAGES: u32 = 256;

/// Most scatter-gather entries of data in a capsule.
pub const MAX_INLINE_SEGMENTS: u32 = 4;

/// A sector of the block layer, as a power of two.
pub const SECTOR_SHIFT: u8 = 9;

/// Pages of data that a region of a device takes, from the longest page list
/// that the device registers: one page less, as data that begins within a page
/// reaches into one more. `None` where that is none.
#[must_use]
pub fn region_pages(max_page_list_len: u32) -> Option<u32> {
    let pages = max_page_list_len.saturating_sub(1).min(MAX_REGION_PAGES);
    (pages > 0).then_some(pages)
}

/// Most sectors of a command: what the target takes, a region holds, and the
/// length of a descriptor can tell.
#[must_use]
pub fn max_sectors(controller: &Controller, min_page_shift: u8, region_pages: u32) -> u32 {
    let region = region_pages.saturating_mul(1 << (REGION_PAGE_SHIFT - SECTOR_SHIFT));
    let target = match controller.max_transfer_shift {
        0 => u32::MAX,
        shift => sectors_of_pages(shift, min_page_shift),
    };
    region.min(target).min(Sgl::MAX_KEYED_LEN >> SECTOR_SHIFT)
}

/// Most pieces of memory that the data of a command may be in, where each but
/// the first begins at a page and each but the last ends at one: a region has
/// a page for each.
#[must_use]
pub fn max_segments(max_sectors: u32, region_pages: u32) -> u16 {
    let pages = max_sectors >> (REGION_PAGE_SHIFT - SECTOR_SHIFT);
    let segments = pages.saturating_add(1).min(region_pages);
    u16::try_from(segments).unwrap_or(u16::MAX)
}

/// Sectors of 2^`shift` pages of a controller; without limit where they
/// cannot be counted.
pub(super) fn sectors_of_pages(shift: u8, min_page_shift: u8) -> u32 {
    let shift = u32::from(shift)
        .saturating_add(u32::from(min_page_shift))
        .saturating_sub(u32::from(SECTOR_SHIFT));
    1u32.checked_shl(shift).unwrap_or(u32::MAX)
}

/// Which data of an I/O queue's write may go in the capsule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InlineLimit {
    bytes: u32,
    segments: u32,
}

impl InlineLimit {
    /// Whether it allows all that `other` does.
    #[must_use]
    pub const fn covers(&self, other: &Self) -> bool {
        self.bytes >= other.bytes && self.segments >= other.segments
    }

    /// Size of the unit of capsule sizes.
    const UNIT: u32 = 16;

    /// Units of a command.
    const COMMAND_UNITS: u32 = 4;

    /// What the target has room for, and the device can gather: one of its
    /// entries of a send is the command.
    ///
    /// The room has to begin at once after the command: where it begins later
    /// nothing goes there.
    #[must_use]
    pub fn negotiate(controller: &Controller, max_send_entries: u32) -> Self {
        let units = controller
            .io_command_capsule_size
            .saturating_sub(Self::COMMAND_UNITS);
        let room = units.saturating_mul(Self::UNIT);
        let segments = max_send_entries.saturating_sub(1).min(MAX_INLINE_SEGMENTS);
        let possible = controller.has_sgl_offset() && controller.in_capsule_data_offset == 0;
        if !possible || room == 0 || segments == 0 {
            return Self::default();
        }
        Self {
            bytes: room,
            segments,
        }
    }

    /// Whether data of `bytes` in `segments` pieces may go in the capsule.
    #[inline]
    #[must_use]
    pub const fn allows(self, bytes: u32, segments: u32) -> bool {
        bytes <= self.bytes && segments <= self.segments
    }

    /// Most bytes in a capsule; 0 where there can be none.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.bytes
    }

    /// Most pieces in a capsule; 0 where there can be none.
    #[must_use]
    pub const fn segments(self) -> u32 {
        self.segments
    }
}

#[cfg(test)]
mod tests;
