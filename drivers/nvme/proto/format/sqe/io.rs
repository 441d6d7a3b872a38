// SPDX-License-Identifier: GPL-2.0

//! Commands of the NVM command set.

use super::{Command, Direction};
use crate::format::dsm::RangeCount;

/// How many blocks a command is about: 1 to 65536.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BlockCount(u16);

impl BlockCount {
    /// The most blocks that one command can be about.
    pub const MAX: u32 = 1 << 16;

    /// Takes a count; `None` where a command cannot have it.
    #[inline]
    #[must_use]
    pub fn new(blocks: u32) -> Option<Self> {
        u16::try_from(blocks.checked_sub(1)?).ok().map(Self)
    }

    /// The count.
    #[inline]
    #[must_use]
    pub fn get(self) -> u32 {
        u32::from(self.0).saturating_add(1)
    }

    /// The count as commands have it, where 0 is one block.
    #[inline]
    fn to_le_bytes(self) -> [u8; 2] {
        self.0.to_le_bytes()
    }
}

/// The blocks of a namespace that a command is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRange {
    /// The first block.
    pub start: u64,
    /// How many there are.
    pub count: BlockCount,
}

/// Whether Write Zeroes may deallocate the blocks (DEAC).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deallocate {
    /// It may.
    Allowed,
    /// The blocks stay allocated.
    Forbidden,
}

/// What a read or write asks for besides its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RwFlags {
    /// Written data shall be on the medium, and be read from there.
    pub force_unit_access: bool,
    /// The controller shall not try long to recover from errors.
    pub limited_retry: bool,
    /// The data will probably be asked for soon.
    pub prefetch: bool,
}

impl RwFlags {
    const LIMITED_RETRY: u16 = 1 << 15;
    const FORCE_UNIT_ACCESS: u16 = 1 << 14;
    const FREQUENCY_PREFETCH: u32 = 7;

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

    #[inline]
    const fn dataset_management(self) -> u32 {
        if self.prefetch {
            Self::FREQUENCY_PREFETCH
        } else {
            0
        }
    }
}

/// What a command of an I/O queue does, as far as it is told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IoOp {
    /// Reads blocks.
    Read,
    /// Writes blocks.
    Write,
    /// Puts what the volatile write cache holds on the medium.
    Flush,
    /// Anything else, Fabrics commands included.
    #[default]
    Other,
}

impl IoOp {
    /// How many kinds there are.
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
    const ATTRIBUTE_DEALLOCATE: u32 = 1 << 2;

    /// Reads blocks.
    #[inline]
    #[must_use]
    pub fn read(nsid: u32, range: BlockRange, hints: RwFlags) -> Self {
        Self::transfer(Direction::FromTarget, nsid, range, hints)
    }

    /// Writes blocks.
    #[inline]
    #[must_use]
    pub fn write(nsid: u32, range: BlockRange, hints: RwFlags) -> Self {
        Self::transfer(Direction::ToTarget, nsid, range, hints)
    }

    /// Reads or writes blocks.
    #[inline]
    #[must_use]
    pub fn transfer(direction: Direction, nsid: u32, range: BlockRange, hints: RwFlags) -> Self {
        let opcode = match direction {
            Direction::FromTarget => Self::READ,
            Direction::ToTarget => Self::WRITE,
        };
        let mut command = Self::with_range(opcode, nsid, range, hints.control());
        command.put::<52, 4>(hints.dataset_management().to_le_bytes());
        command
    }

    /// Puts what the volatile write cache holds on the medium.
    #[inline]
    #[must_use]
    pub fn flush(nsid: u32) -> Self {
        Self::with_namespace(Self::FLUSH, nsid)
    }

    /// The blocks that the command is about on queue `queue_id`; `None` for one that is about
    /// something else, or several ranges.
    #[must_use]
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

    /// What the command does on queue `queue_id`. The opcodes of the admin queue, 0, are others.
    #[inline]
    #[must_use]
    pub fn io_op(&self, queue_id: u16) -> IoOp {
        match (queue_id, self.opcode()) {
            (0, _) => IoOp::Other,
            (_, Self::READ) => IoOp::Read,
            (_, Self::WRITE) => IoOp::Write,
            (_, Self::FLUSH) => IoOp::Flush,
            _ => IoOp::Other,
        }
    }

    /// Makes blocks read as zeroes.
    #[inline]
    #[must_use]
    pub fn write_zeroes(nsid: u32, range: BlockRange, deallocate: Deallocate) -> Self {
        let control = match deallocate {
            Deallocate::Allowed => Self::WRITE_ZEROES_DEALLOCATE,
            Deallocate::Forbidden => 0,
        };
        Self::with_range(Self::WRITE_ZEROES, nsid, range, control)
    }

    /// Deallocates the ranges that the data describes: see [`crate::format::dsm`].
    #[inline]
    #[must_use]
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
