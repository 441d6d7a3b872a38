// SPDX-License-Identifier: GPL-2.0

//! I/O commands of the NVM command set.
//!
//! Source: NVM Command Set Specification; Flush: NVMe Base 2.3, section 7.2.

use super::{Command, Direction};
use crate::format::dsm::RangeCount;

/// Number of blocks of a command: 1 to 65536.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BlockCount(u16);

impl BlockCount {
    /// Largest number of blocks of a command.
    pub const MAX: u32 = 1 << 16;

    /// Returns the count; `None` if a command cannot have it.
    #[inline]
    pub fn new(blocks: u32) -> Option<Self> {
        u16::try_from(blocks.checked_sub(1)?).ok().map(Self)
    }

    /// Returns the number of blocks.
    #[inline]
    pub fn get(self) -> u32 {
        u32::from(self.0).saturating_add(1)
    }

    /// Returns the NLB field, which is zero-based.
    #[inline]
    fn to_le_bytes(self) -> [u8; 2] {
        self.0.to_le_bytes()
    }
}

/// Blocks of a namespace that a command accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRange {
    /// First block.
    pub start: u64,
    /// Number of blocks.
    pub count: BlockCount,
}

/// Whether Write Zeroes may deallocate the blocks (DEAC).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deallocate {
    /// The controller may deallocate the blocks.
    Allowed,
    /// The blocks stay allocated.
    Forbidden,
}

/// Protection information of blocks (T10 PI), which the controller inserts and strips.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protection {
    /// The blocks have none.
    #[default]
    None,
    /// Without a reference tag that commands have to name: type 3.
    Guard,
    /// The reference tag is the lower half of the block's number: types 1 and 2.
    ReferenceTag,
}

impl Protection {
    /// Returns the metadata of a block in bytes.
    pub const fn metadata_size(self) -> u16 {
        match self {
            Self::None => 0,
            Self::Guard | Self::ReferenceTag => 8,
        }
    }
}

/// Options of a read or write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RwFlags {
    /// FUA: written data is on the medium when the command completes, and data is read from there.
    pub force_unit_access: bool,
    /// LR: the controller limits its attempts at error recovery.
    pub limited_retry: bool,
    /// Protection information of the blocks.
    pub protection: Protection,
}

impl RwFlags {
    const LIMITED_RETRY: u16 = 1 << 15;
    const FORCE_UNIT_ACCESS: u16 = 1 << 14;

    #[inline]
    const fn control(self) -> u16 {
        let mut control = 0;
        if self.limited_retry {
            control |= Self::LIMITED_RETRY;
        }
        if self.force_unit_access {
            control |= Self::FORCE_UNIT_ACCESS;
        }
        control
    }
}

/// Kind of a command on an I/O queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IoOp {
    /// Reads blocks.
    Read,
    /// Writes blocks.
    Write,
    /// Writes the volatile write cache to the medium.
    Flush,
    /// Any other command, Fabrics commands included.
    #[default]
    Other,
}

impl IoOp {
    /// Number of kinds.
    pub const COUNT: usize = Self::Other as usize + 1;
}

impl Command {
    const FLUSH: u8 = 0x00;
    const WRITE: u8 = 0x01;
    const READ: u8 = 0x02;
    const WRITE_UNCORRECTABLE: u8 = 0x04;
    const COMPARE: u8 = 0x05;
    const WRITE_ZEROES: u8 = 0x08;
    const DATASET_MANAGEMENT: u8 = 0x09;
    const VERIFY: u8 = 0x0c;

    const WRITE_ZEROES_DEALLOCATE: u16 = 1 << 9;
    /// PRINFO.PRACT: no protection information is transferred.
    const PROTECTION_ACTION: u8 = 1 << 5;
    const ATTRIBUTE_DEALLOCATE: u32 = 1 << 2;

    /// Returns a Read command.
    #[inline]
    pub fn read(nsid: u32, range: BlockRange, hints: RwFlags) -> Self {
        Self::transfer(Direction::FromTarget, nsid, range, hints)
    }

    /// Returns a Write command.
    #[inline]
    pub fn write(nsid: u32, range: BlockRange, hints: RwFlags) -> Self {
        Self::transfer(Direction::ToTarget, nsid, range, hints)
    }

    /// Returns a Read or a Write command, as `direction` says.
    #[inline]
    pub fn transfer(direction: Direction, nsid: u32, range: BlockRange, hints: RwFlags) -> Self {
        let opcode = match direction {
            Direction::FromTarget => Self::READ,
            Direction::ToTarget => Self::WRITE,
        };
        let mut command = Self::with_range(opcode, nsid, range, hints.control());
        // Dataset Management (DSM): no hints.
        command.put::<52, 4>([0; 4]);
        command.set_protection(range, hints.protection);
        command
    }

    #[inline]
    fn set_protection(&mut self, range: BlockRange, protection: Protection) {
        if protection == Protection::None {
            return;
        }
        let control = self.fields().u8::<51>() | Self::PROTECTION_ACTION;
        self.put::<51, 1>([control]);
        if protection == Protection::ReferenceTag {
            let [a, b, c, d, ..] = range.start.to_le_bytes();
            self.put::<56, 4>([a, b, c, d]);
        }
    }

    /// Returns a Flush command, which writes the volatile write cache to the medium.
    #[inline]
    pub fn flush(nsid: u32) -> Self {
        Self::with_namespace(Self::FLUSH, nsid)
    }

    /// Returns the blocks that the command accesses on queue `queue_id`. Returns `None` for a
    /// command without a range of blocks or with several, and for the admin queue.
    pub fn range(&self, queue_id: u16) -> Option<BlockRange> {
        let one_range = matches!(
            self.opcode(),
            Self::WRITE
                | Self::READ
                | Self::WRITE_UNCORRECTABLE
                | Self::COMPARE
                | Self::WRITE_ZEROES
                | Self::VERIFY
        );
        (queue_id != 0 && one_range).then(|| BlockRange {
            start: self.fields().u64::<40>(),
            count: BlockCount(self.fields().u16::<48>()),
        })
    }

    /// Returns the kind of the command on queue `queue_id`. All commands of the admin queue, 0, are
    /// [`IoOp::Other`]: their opcodes have other meanings.
    #[inline]
    pub fn io_op(&self, queue_id: u16) -> IoOp {
        match (queue_id, self.opcode()) {
            (0, _) => IoOp::Other,
            (_, Self::READ) => IoOp::Read,
            (_, Self::WRITE) => IoOp::Write,
            (_, Self::FLUSH) => IoOp::Flush,
            _ => IoOp::Other,
        }
    }

    /// Returns a Write Zeroes command.
    #[inline]
    pub fn write_zeroes(
        nsid: u32,
        range: BlockRange,
        deallocate: Deallocate,
        protection: Protection,
    ) -> Self {
        let control = match deallocate {
            Deallocate::Allowed => Self::WRITE_ZEROES_DEALLOCATE,
            Deallocate::Forbidden => 0,
        };
        let mut command = Self::with_range(Self::WRITE_ZEROES, nsid, range, control);
        command.set_protection(range, protection);
        command
    }

    /// Returns a Dataset Management command that deallocates ranges. Its data is that of
    /// [`crate::format::dsm::encode`].
    #[inline]
    pub fn deallocate(nsid: u32, ranges: RangeCount) -> Self {
        let mut command = Self::with_namespace(Self::DATASET_MANAGEMENT, nsid);
        command.put::<40, 4>(u32::from(ranges.zero_based()).to_le_bytes());
        command.put::<44, 4>(Self::ATTRIBUTE_DEALLOCATE.to_le_bytes());
        command
    }

    #[inline]
    fn with_range(opcode: u8, nsid: u32, range: BlockRange, control: u16) -> Self {
        let mut command = Self::with_namespace(opcode, nsid);
        command.put::<40, 8>(range.start.to_le_bytes());
        command.put::<48, 2>(range.count.to_le_bytes());
        command.put::<50, 2>(control.to_le_bytes());
        command
    }
}

#[cfg(test)]
mod tests;
