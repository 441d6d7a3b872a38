// SPDX-License-Identifier: GPL-2.0

//! How many bytes a controller transfers for a command that a target passes to it.
//!
//! A PCI driver describes the data by PRP entries, without a length: the controller takes the length from the command.
//! If the data is shorter, the controller uses memory that is not the host's. If two pages are described where the
//! command has more, it takes the second one, whose content the host has sent, for a list of addresses.
//!
//! Source: NVMe Base 2.3; NVM Command Set 1.2; Zoned Namespace Command Set 1.2.

use crate::format::{sqe::Command, status::Code};

/// Page of PRP entries. Two entries describe as many bytes at any address, and none of them is a list.
const PAGE: u64 = 4096;

/// Format of the namespace of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockFormat {
    /// Bytes of a logical block, without metadata.
    pub size: u32,
    /// Bytes of metadata of a logical block.
    pub metadata: u32,
}

/// The queue of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassthruQueue {
    /// The admin queue.
    Admin,
    /// An I/O queue, and the format of the command's namespace; `None` if there is none.
    Io(Option<BlockFormat>),
}

/// Commands whose length is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnknownLength {
    /// They are refused.
    Refuse,
    /// They are passed on.
    Allow,
}

/// Checks that a controller transfers no more than the `given` bytes of data of a command. `unknown` says what
/// happens to a command whose length is not known.
///
/// # Errors
///
/// The status to answer the command with.
pub fn check(
    command: &Command,
    queue: PassthruQueue,
    given: u32,
    unknown: UnknownLength,
) -> Result<(), Code> {
    let length = match queue {
        PassthruQueue::Admin => admin_length(command),
        PassthruQueue::Io(format) => io_length(command, format),
    };
    match (length, unknown) {
        (Ok(length), _) if fits(length, given.into()) => Ok(()),
        (Ok(_), _) => Err(Code::INVALID_DATA_SGL_LENGTH),
        (Err(_), UnknownLength::Allow) => Ok(()),
        (Err(code), UnknownLength::Refuse) => Err(code),
    }
}

/// Returns whether a controller finds `length` bytes in data of `given` bytes. More data changes where the PRP entries
/// are, unless there is no list of them.
fn fits(length: u64, given: u64) -> bool {
    length == given || (length < given && given <= PAGE)
}

/// Returns the length of an I/O command's data.
///
/// # Errors
///
/// The status for a command of unknown length.
fn io_length(command: &Command, format: Option<BlockFormat>) -> Result<u64, Code> {
    /// Update of reclaim unit handles.
    const RUH_UPDATE: u8 = 1;
    /// Set Zone Descriptor Extension.
    const SET_EXTENSION: u8 = 0x10;
    let dwords = Dwords::of(command);
    match command.opcode() {
        // Write, Read, Compare, Zone Append.
        0x01 | 0x02 | 0x05 | 0x7d => blocks(dwords.low(12), format),
        // Flush, Write Uncorrectable, Write Zeroes, Verify, Cancel.
        0x00 | 0x04 | 0x08 | 0x0c | 0x18 => Ok(0),
        // Dataset Management: ranges.
        0x09 => Ok(entries(dwords.byte(10).into(), 16)),
        // I/O Management Receive.
        0x12 => Ok(dwords_of(dwords.get(11))),
        // Copy: ranges of a format.
        0x19 => match (dwords.get(12) >> 8) & 0xf {
            0 | 2 => Ok(entries(dwords.byte(12).into(), 32)),
            1 | 3 => Ok(entries(dwords.byte(12).into(), 40)),
            _ => Err(Code::INVALID_FIELD),
        },
        // I/O Management Send: placement identifiers.
        0x1d => match dwords.byte(10) {
            0 => Ok(0),
            RUH_UPDATE => Ok(entries(dwords.get(10) >> 16, 2)),
            _ => Err(Code::INVALID_FIELD),
        },
        // Zone Management Send. The length of an extension is that of the zone's format.
        0x79 => match dwords.byte(13) {
            SET_EXTENSION => Err(Code::INVALID_FIELD),
            _ => Ok(0),
        },
        // Zone Management Receive.
        0x7a => Ok(dwords_of(dwords.get(12))),
        _ => without_data(command),
    }
}

/// Returns the length of an admin command's data, as [`io_length`] does.
fn admin_length(command: &Command) -> Result<u64, Code> {
    let dwords = Dwords::of(command);
    match command.opcode() {
        // Get Log Page: the number of dwords is in two halves.
        0x02 => Ok(dwords_of((dwords.get(10) >> 16) | (dwords.get(11) << 16))),
        // Identify.
        0x06 => Ok(PAGE),
        // Get Features: which capabilities the feature has.
        0x0a if (dwords.get(10) >> 8) & 7 == 3 => Ok(0),
        // Set Features, Get Features.
        0x09 | 0x0a => feature_length(dwords.byte(10)),
        _ => without_data(command),
    }
}

/// Returns the length of a feature's data structure.
fn feature_length(feature: u8) -> Result<u64, Code> {
    match feature {
        // LBA Range Type.
        0x03 => Ok(PAGE),
        // Autonomous Power State Transition.
        0x0c => Ok(256),
        // Timestamp.
        0x0e => Ok(8),
        // Predictable Latency Mode Config, Host Behavior Support.
        0x13 | 0x16 => Ok(512),
        // Host Identifier.
        0x81 => Ok(16),
        0xc0.. => Err(Code::INVALID_FIELD),
        _ => Ok(0),
    }
}

/// Returns 0 if the opcode says that the command has no data.
fn without_data(command: &Command) -> Result<u64, Code> {
    match command.transfers_data() {
        true => Err(Code::INVALID_OPCODE),
        false => Ok(0),
    }
}

/// Returns the bytes of a number of blocks, which is zero-based. Metadata is not known to be with the data, or apart.
fn blocks(count: u16, format: Option<BlockFormat>) -> Result<u64, Code> {
    match format {
        None => Err(Code::INVALID_NAMESPACE),
        Some(BlockFormat { metadata: 0, size }) => Ok(entries(count.into(), size)),
        Some(_) => Err(Code::INVALID_FIELD),
    }
}

/// Returns the bytes of a number of dwords, which is zero-based.
fn dwords_of(count: u32) -> u64 {
    entries(count, 4)
}

/// Returns the bytes of `count` entries of `size` bytes. The number is zero-based.
fn entries(count: u32, size: u32) -> u64 {
    u64::from(count)
        .saturating_add(1)
        .saturating_mul(size.into())
}

/// Dwords 10 to 15 of a command.
struct Dwords([u8; 24]);

impl Dwords {
    fn of(command: &Command) -> Self {
        Self(command.dwords_10_15())
    }

    /// Returns the dword `number`; 0 if it is none of these.
    fn get(&self, number: usize) -> u32 {
        let start = number.checked_sub(10).and_then(|at| at.checked_mul(4));
        let bytes = start.and_then(|start| self.0.get(start..)?.first_chunk());
        bytes.copied().map_or(0, u32::from_le_bytes)
    }

    /// Returns the low half of a dword.
    fn low(&self, number: usize) -> u16 {
        let [low, high, ..] = self.get(number).to_le_bytes();
        u16::from_le_bytes([low, high])
    }

    /// Returns the lowest byte of a dword.
    fn byte(&self, number: usize) -> u8 {
        let [lowest, ..] = self.get(number).to_le_bytes();
        lowest
    }
}

#[cfg(test)]
mod tests;
