// SPDX-License-Identifier: GPL-2.0

//! Who may send a command to a namespace or a controller.
//!
//! The decisions are those of the C host (`nvme_cmd_allowed`).

use crate::format::effects_log::{EffectsEntry, EffectsLog};
use crate::format::sqe::Command;

/// What a process needs to send a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// The disk or controller open.
    Open,
    /// The disk open for writing.
    OpenForWriting,
    /// `CAP_SYS_ADMIN`.
    SysAdmin,
}

/// How a process has opened a disk or controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenMode {
    /// Only a partition of the disk.
    pub partition: bool,
    /// Not only for reading.
    pub for_writing: bool,
}

impl Permission {
    /// Whether a process without `CAP_SYS_ADMIN` has the permission by its open file.
    ///
    /// A partition gives none: a command could reach the rest of the disk, which the process may
    /// not be allowed to open.
    #[must_use]
    pub const fn is_granted_to(self, mode: OpenMode) -> bool {
        match self {
            _ if mode.partition => false,
            Self::Open => true,
            Self::OpenForWriting => mode.for_writing,
            Self::SysAdmin => false,
        }
    }
}

/// The permission that each I/O command needs; by default `CAP_SYS_ADMIN` for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoPermissions {
    /// A bit for each opcode that needs [`Permission::Open`].
    open: u128,
    /// A bit for each opcode that needs [`Permission::OpenForWriting`].
    open_for_writing: u128,
}

impl IoPermissions {
    const WRITE: u8 = 0x01;
    const WRITE_UNCORRECTABLE: u8 = 0x04;
    const WRITE_ZEROES: u8 = 0x08;
    /// The first vendor specific opcode.
    const VENDOR: u8 = 0x80;

    /// Reads the permissions from the log. A command that is not in it needs `CAP_SYS_ADMIN`.
    #[must_use]
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
        // The lowest bit of an opcode says that data goes to the target.
        if opcode & 1 != 0 || known_to_write || entry.changes_content() {
            Permission::OpenForWriting
        } else {
            Permission::Open
        }
    }

    /// The permission that a command of this opcode needs.
    #[must_use]
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
mod tests {
    use super::*;

    #[test]
    fn to_whom_it_is_given() {
        for for_writing in [false, true] {
            let disk = OpenMode {
                partition: false,
                for_writing,
            };
            assert!(Permission::Open.is_granted_to(disk));
            assert_eq!(Permission::OpenForWriting.is_granted_to(disk), for_writing);
            assert!(!Permission::SysAdmin.is_granted_to(disk));
            let partition = OpenMode {
                partition: true,
                for_writing,
            };
            for permission in [
                Permission::Open,
                Permission::OpenForWriting,
                Permission::SysAdmin,
            ] {
                assert!(!permission.is_granted_to(partition));
            }
        }
    }

    /// A log with one entry of an admin command.
    fn admin_log(opcode: u8, entry: u32) -> Vec<u8> {
        let mut log = vec![0; 4096];
        let at = 4 * usize::from(opcode);
        log[at..at + 4].copy_from_slice(&entry.to_le_bytes());
        log
    }

    /// A log with one entry of an I/O command.
    fn io_log(opcode: u8, entry: u32) -> Vec<u8> {
        let mut log = vec![0; 4096];
        let at = 1024 + 4 * usize::from(opcode);
        log[at..at + 4].copy_from_slice(&entry.to_le_bytes());
        log
    }

    fn io_permission(opcode: u8, entry: u32) -> Permission {
        IoPermissions::from_log(EffectsLog::new(&io_log(opcode, entry))).required_for(opcode)
    }

    #[test]
    fn who_may_send_what_is_supported() {
        for opcode in 0..=u8::MAX {
            let supported = match opcode {
                0x7f.. => Permission::SysAdmin,
                0x04 | 0x08 => Permission::OpenForWriting,
                _ if opcode % 2 == 1 => Permission::OpenForWriting,
                _ => Permission::Open,
            };
            assert_eq!(io_permission(opcode, 1), supported, "{opcode:#x}");
            // It changes blocks, too.
            let changing = match opcode {
                0x7f.. => Permission::SysAdmin,
                _ => Permission::OpenForWriting,
            };
            assert_eq!(io_permission(opcode, 0b11), changing, "{opcode:#x}");
        }
    }

    #[test]
    fn what_is_not_supported_or_more_than_io_is_not_for_all() {
        for opcode in 0..=u8::MAX {
            for entry in [0, 0b10, !1] {
                let other = io_permission(opcode, entry);
                assert_eq!(other, Permission::SysAdmin, "{opcode:#x}");
            }
        }
        for bit in 2..32 {
            let expected = match bit {
                2..=15 => Permission::SysAdmin,
                _ => Permission::Open,
            };
            assert_eq!(io_permission(0x02, 1 | (1 << bit)), expected, "{bit}");
        }
    }

    #[test]
    fn entries_are_of_one_command_and_of_io() {
        let one = IoPermissions::from_log(EffectsLog::new(&io_log(0x02, 1)));
        let allowed =
            (0..=u8::MAX).filter(|opcode| one.required_for(*opcode) != Permission::SysAdmin);
        assert_eq!(allowed.collect::<Vec<_>>(), [0x02]);
        let admin = IoPermissions::from_log(EffectsLog::new(&admin_log(0x02, 1)));
        assert_eq!(admin, IoPermissions::default());
        for short in [0, 1024, 1024 + 4 * 0x02 + 3] {
            let short = IoPermissions::from_log(EffectsLog::new(&io_log(0x02, !0)[..short]));
            assert_eq!(short, IoPermissions::default());
        }
    }
}
