// SPDX-License-Identifier: GPL-2.0

//! Block layer status of a command.
//!
//! The mapping is that of the C host (`nvme_error_status()`), but for path errors. The C host has
//! another path for most of them.

use crate::format::status::{Code, Status};

/// Status codes of the block layer (`BLK_STS_*`), without the kernel's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockStatus {
    /// Success.
    Ok,
    /// Out of space.
    NoSpace,
    /// The target cannot execute the command.
    Target,
    /// The target does not support the command.
    NotSupported,
    /// Medium error.
    Medium,
    /// Data integrity error.
    Protection,
    /// Reservation conflict with another host.
    ReservationConflict,
    /// Transport error: the path to the target failed.
    Transport,
    /// Too many active zones.
    ZoneActiveResource,
    /// Too many open zones.
    ZoneOpenResource,
    /// Any other error.
    Io,
}

impl BlockStatus {
    /// Returns the block layer status for the status of a command.
    pub const fn of(status: Status) -> Self {
        match status.code() {
            Code::SUCCESS => Self::Ok,
            Code::CAPACITY_EXCEEDED => Self::NoSpace,
            Code::LBA_OUT_OF_RANGE | Code::COMMAND_INTERRUPTED | Code::NAMESPACE_NOT_READY => {
                Self::Target
            }
            Code::CONFLICTING_ATTRIBUTES
            | Code::INVALID_OPCODE
            | Code::INVALID_FIELD
            | Code::INVALID_NAMESPACE => Self::NotSupported,
            Code::WRITE_FAULT
            | Code::UNRECOVERED_READ_ERROR
            | Code::UNWRITTEN_BLOCK
            | Code::ACCESS_DENIED
            | Code::READ_ONLY_RANGE
            | Code::COMPARE_FAILURE => Self::Medium,
            Code::GUARD_CHECK_ERROR
            | Code::APPLICATION_TAG_CHECK_ERROR
            | Code::REFERENCE_TAG_CHECK_ERROR
            | Code::INVALID_PROTECTION_INFORMATION => Self::Protection,
            Code::RESERVATION_CONFLICT => Self::ReservationConflict,
            Code::ZONE_TOO_MANY_ACTIVE => Self::ZoneActiveResource,
            Code::ZONE_TOO_MANY_OPEN => Self::ZoneOpenResource,
            code if code.is_path_related() => Self::Transport,
            _ => Self::Io,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `nvme_error_status()` by number; path errors are `Transport`, and every other code is `Io`.
    const NOT_IO: &[(u16, BlockStatus)] = &[
        (0x000, BlockStatus::Ok),
        (0x001, BlockStatus::NotSupported),
        (0x002, BlockStatus::NotSupported),
        (0x00b, BlockStatus::NotSupported),
        (0x021, BlockStatus::Target),
        (0x080, BlockStatus::Target),
        (0x081, BlockStatus::NoSpace),
        (0x082, BlockStatus::Target),
        (0x083, BlockStatus::ReservationConflict),
        (0x180, BlockStatus::NotSupported),
        (0x181, BlockStatus::Protection),
        (0x182, BlockStatus::Medium),
        (0x1bd, BlockStatus::ZoneActiveResource),
        (0x1be, BlockStatus::ZoneOpenResource),
        (0x280, BlockStatus::Medium),
        (0x281, BlockStatus::Medium),
        (0x282, BlockStatus::Protection),
        (0x283, BlockStatus::Protection),
        (0x284, BlockStatus::Protection),
        (0x285, BlockStatus::Medium),
        (0x286, BlockStatus::Medium),
        (0x287, BlockStatus::Medium),
    ];

    #[test]
    fn every_status() {
        for field in 0..=u16::MAX {
            let status = Status::from_wire(field);
            let expected = NOT_IO
                .iter()
                .find(|(code, _)| *code == status.get() & 0x7ff)
                .map_or_else(
                    || match status.get() & 0x700 {
                        0x300 => BlockStatus::Transport,
                        _ => BlockStatus::Io,
                    },
                    |(_, class)| *class,
                );
            assert_eq!(BlockStatus::of(status), expected, "{status:?}");
        }
    }
}
