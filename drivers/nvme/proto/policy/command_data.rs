// SPDX-License-Identifier: GPL-2.0

//! Where the data of a command is, and whether a target takes it from there.
//!
//! Source: NVMe Base 2.3, section 4.3.2; NVMe RDMA Transport.

use crate::format::{
    sgl::{DataBlock, Invalidate, Sgl, SglError},
    sqe::{Command, Direction},
    status::Code,
};

/// Limits of a queue of a target.
#[derive(Clone, Copy, Debug)]
pub struct DataLimits {
    /// Bytes of a capsule behind the command.
    pub in_capsule: u32,
    /// Bytes that a command transfers (MDTS).
    pub transfer: u32,
}

/// The data of a command. A length is never zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandData {
    /// The command has no data.
    None,
    /// Data in the capsule.
    InCapsule {
        /// Offset behind the command in bytes.
        offset: u32,
        /// Length in bytes.
        length: u32,
    },
    /// Data in the host's memory.
    Keyed {
        /// Address in the host's memory; the end does not wrap around.
        address: u64,
        /// Length in bytes.
        length: u32,
        /// The key (R_Key).
        key: u32,
        /// The side that invalidates the key.
        invalidate: Invalidate,
    },
}

impl CommandData {
    /// Returns the data of a command.
    ///
    /// # Errors
    ///
    /// The status to answer the command with.
    #[inline]
    pub fn of(command: &Command, limits: DataLimits) -> Result<Self, Code> {
        match Sgl::parse(&command.sgl()) {
            Ok(DataBlock::Keyed { length: 0, .. }) => Ok(Self::None),
            // The descriptor of such a command means nothing. nvmet would write memory to the host
            // that it never filled.
            Ok(DataBlock::Keyed { .. }) if !command.transfers_data() => Ok(Self::None),
            Ok(DataBlock::Keyed {
                address,
                length,
                key,
                invalidate,
            }) => {
                if length > limits.transfer {
                    return Err(Code::INVALID_FIELD);
                }
                // The end would wrap around. In the form of `RemoteKey::covers` of rrdma, so that the
                // compiler leaves its check out.
                if u64::from(length) > !address {
                    return Err(Code::INVALID_DATA_SGL_LENGTH);
                }
                Ok(Self::Keyed {
                    address,
                    length,
                    key,
                    invalidate,
                })
            }
            Ok(DataBlock::InCapsule { offset, length }) => {
                Self::in_capsule(command, offset, length, limits.in_capsule)
            }
            Err(SglError::Subtype(_)) => Err(Code::INVALID_FIELD),
            Err(SglError::Type(_)) => Err(Code::INVALID_SGL_TYPE),
        }
    }

    /// Returns whether the data of a command is in its capsule, as its host says.
    pub fn is_in_capsule(command: &Command) -> bool {
        matches!(Sgl::parse(&command.sgl()), Ok(DataBlock::InCapsule { .. }))
    }

    #[inline]
    fn in_capsule(command: &Command, offset: u64, length: u32, room: u32) -> Result<Self, Code> {
        if command.direction() != Direction::ToTarget {
            return Err(Code::INVALID_FIELD);
        }
        let offset = u32::try_from(offset).map_err(|_| Code::INVALID_SGL_OFFSET)?;
        match offset.checked_add(length) {
            Some(end) if end <= room && length == 0 => Ok(Self::None),
            Some(end) if end <= room => Ok(Self::InCapsule { offset, length }),
            _ => Err(Code::INVALID_SGL_OFFSET),
        }
    }
}

#[cfg(test)]
mod tests;
