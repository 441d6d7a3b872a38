// SPDX-License-Identifier: GPL-2.0

//! Permission that a command from user space requires.
//!
//! The decisions are those of the C host (`nvme_cmd_allowed()`).

use crate::format::effects_log::{EffectsEntry, EffectsLog};
use crate::format::sqe::Command;

/// Permission that a process needs to send a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// A file of the disk or controller.
    Open,
    /// A file of the disk that is open for writing.
    OpenForWriting,
    /// `CAP_SYS_ADMIN`.
    SysAdmin,
}

/// Permission with which a process opened a disk or controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenMode {
    /// A partition of the disk, not the whole disk.
    pub partition: bool,
    /// The file is open for writing.
    pub for_writing: bool,
}

impl Permission {
    /// Returns whether an open file gives the permission to a process without `CAP_SYS_ADMIN`.
    ///
    /// A partition gives none: a command could access the rest of the disk, which the process may
    /// not be allowed to open.
    pub const fn is_granted_to(self, mode: OpenMode) -> bool {
        match self {
            _ if mode.partition => false,
            Self::Open => true,
            Self::OpenForWriting => mode.for_writing,
            Self::SysAdmin => false,
        }
    }
}

/// Permissions that I/O commands require; by default `CAP_SYS_ADMIN` for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoPermissions {
    /// A bit for each opcode that requires [`Permission::Open`].
    open: u128,
    /// A bit for each opcode that requires [`Permission::OpenForWriting`].
    open_for_writing: u128,
}

impl IoPermissions {
    const WRITE: u8 = 0x01;
    const WRITE_UNCORRECTABLE: u8 = 0x04;
    const WRITE_ZEROES: u8 = 0x08;
    /// First vendor specific opcode.
    const VENDOR: u8 = 0x80;

    /// Returns the permissions according to the log. A command without an entry requires
    /// `CAP_SYS_ADMIN`.
    pub fn from_log(log: EffectsLog<'_>) -> Self {
        let mut permissions = Self::default();
        for opcode in 0..Self::VENDOR {
            let bit = 1u128.wrapping_shl(opcode.into());
            match Self::by_entry(opcode, log.io(opcode)) {
                Permission::Open => permissions.open |= bit,
                Permission::OpenForWriting => permissions.open_for_writing |= bit,
                Permission::SysAdmin => {}
            }
        }
        permissions
    }

    fn by_entry(opcode: u8, entry: EffectsEntry) -> Permission {
        if !entry.is_supported() || entry.changes_more_than_content() {
            return Permission::SysAdmin;
        }
        let known_to_write = matches!(
            opcode,
            Self::WRITE | Self::WRITE_UNCORRECTABLE | Self::WRITE_ZEROES
        );
        // Bit 0 of an opcode: data is transferred to the target.
        if opcode & 1 != 0 || known_to_write || entry.changes_content() {
            Permission::OpenForWriting
        } else {
            Permission::Open
        }
    }

    /// Returns the permission that a command with this opcode requires.
    pub fn required_for(&self, opcode: u8) -> Permission {
        let is_in = |opcodes: u128| opcodes.wrapping_shr(opcode.into()) & 1 != 0;
        match opcode {
            Command::FABRICS | Self::VENDOR.. => Permission::SysAdmin,
            _ if is_in(self.open) => Permission::Open,
            _ if is_in(self.open_for_writing) => Permission::OpenForWriting,
            _ => Permission::SysAdmin,
        }
    }
}

#[cfg(test)]
mod tests;
