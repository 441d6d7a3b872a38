// SPDX-License-Identifier: GPL-2.0

//! What a command does to others: the log of commands and their effects.
//!
//! NVM Express Base Specification, "Commands Supported and Effects" log page; the decisions are
//! those of the C host (`nvme_command_effects`, `nvme_init_known_nvm_effects`,
//! `nvme_ns_cmd_allowed`).

use crate::format::sqe::Command;
use crate::policy::passthru::Permission;

/// What has to be done about a command to the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CommandEffects {
    /// No I/O may be under way while it is.
    pub exclusive: bool,
    /// Namespaces may not be afterwards what they were.
    pub changes_namespaces: bool,
    /// What the controller can do may not be, either.
    pub changes_controller: bool,
}

impl CommandEffects {
    const NAMESPACE_CAPABILITY: u32 = 1 << 2;
    const NAMESPACE_INVENTORY: u32 = 1 << 3;
    const CONTROLLER_CAPABILITY: u32 = 1 << 4;
    /// Relaxations of what follows.
    const RELAXED: u32 = 0b11 << 14;
    const EXECUTION: u32 = 0b111 << 16;

    /// Whether a command of this opcode may have any: one that only asks has none.
    #[must_use]
    pub const fn may_have(opcode: u8) -> bool {
        // Get Log Page, Identify, Get Features, Keep Alive.
        !matches!(opcode, 0x02 | 0x06 | 0x0a | 0x18)
    }

    /// The effects of a command to the controller. `log` is the page; what is not in it, because
    /// it is short or there is none, is not said.
    #[must_use]
    pub fn of_admin(opcode: u8, log: &[u8]) -> Self {
        let said = Self::entry(opcode, log);
        // It concerns commands to the controller, and not I/O.
        let execution = match opcode {
            Self::SECURITY_RECEIVE => 0,
            _ if said & Self::RELAXED != 0 => 0,
            _ => said & Self::EXECUTION,
        };
        let namespaces = Self::NAMESPACE_CAPABILITY | Self::NAMESPACE_INVENTORY;
        Self {
            exclusive: execution != 0 || matches!(opcode, Self::FORMAT | Self::SANITIZE),
            changes_namespaces: said & namespaces != 0
                || matches!(opcode, Self::FORMAT | Self::MANAGEMENT | Self::ATTACHMENT),
            changes_controller: said & Self::CONTROLLER_CAPABILITY != 0,
        }
    }

    const MANAGEMENT: u8 = 0x0d;
    const ATTACHMENT: u8 = 0x15;
    const FORMAT: u8 = 0x80;
    const SECURITY_RECEIVE: u8 = 0x82;
    const SANITIZE: u8 = 0x84;

    /// The page begins with an entry for each command to the controller.
    fn entry(opcode: u8, log: &[u8]) -> u32 {
        entry_at(usize::from(opcode), log)
    }
}

/// An entry of the page; they have four bytes each.
fn entry_at(number: usize, log: &[u8]) -> u32 {
    let at = number.saturating_mul(4);
    match log.get(at..).and_then(|tail| tail.first_chunk()) {
        Some(entry) => u32::from_le_bytes(*entry),
        None => 0,
    }
}

/// Who may send which command to a namespace, by the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoPermissions {
    /// A bit for each opcode that who may open the disk may send.
    openers: u128,
    /// Likewise who may write to it.
    writers: u128,
}

impl IoPermissions {
    const SUPPORTED: u32 = 1 << 0;
    const CHANGES_CONTENT: u32 = 1 << 1;
    /// Others than that, but for restrictions of the execution, which are about commands to the
    /// controller, the selection of a UUID, and the scope.
    const INTRUSIVE: u32 = 0xfffc;
    const WRITE: u8 = 0x01;
    const WRITE_UNCORRECTABLE: u8 = 0x04;
    const WRITE_ZEROES: u8 = 0x08;
    /// From here on they are the vendors'.
    const VENDOR: u8 = 0x80;
    /// The entries of commands to a namespace come after those to the controller.
    const FIRST: usize = 256;

    /// What the page allows; what is not in it is not supported.
    #[must_use]
    pub fn of_log(log: &[u8]) -> Self {
        let mut allowed = Self::default();
        for opcode in 0..Self::VENDOR {
            let bit = 1u128.wrapping_shl(opcode.into());
            let said = entry_at(Self::FIRST.saturating_add(opcode.into()), log);
            match Self::by_entry(opcode, said) {
                Permission::Opener => allowed.openers |= bit,
                Permission::Writer => allowed.writers |= bit,
                Permission::SysAdmin => {}
            }
        }
        allowed
    }

    fn by_entry(opcode: u8, said: u32) -> Permission {
        if said & Self::SUPPORTED == 0 || said & Self::INTRUSIVE != 0 {
            return Permission::SysAdmin;
        }
        let known_to_write = matches!(
            opcode,
            Self::WRITE | Self::WRITE_UNCORRECTABLE | Self::WRITE_ZEROES
        );
        // The lowest bit of an opcode says that data goes to the target.
        match opcode & 1 != 0 || known_to_write || said & Self::CHANGES_CONTENT != 0 {
            true => Permission::Writer,
            false => Permission::Opener,
        }
    }

    /// Who may send a command of this opcode.
    #[must_use]
    pub fn of(&self, opcode: u8) -> Permission {
        let allows = |opcodes: u128| opcodes.wrapping_shr(opcode.into()) & 1 != 0;
        match opcode {
            Command::FABRICS | Self::VENDOR.. => Permission::SysAdmin,
            _ if allows(self.openers) => Permission::Opener,
            _ if allows(self.writers) => Permission::Writer,
            _ => Permission::SysAdmin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: CommandEffects = CommandEffects {
        exclusive: false,
        changes_namespaces: false,
        changes_controller: false,
    };

    /// A log that says `entry` of `opcode`, and nothing of others.
    fn log(opcode: u8, entry: u32) -> Vec<u8> {
        let mut log = vec![0; 4096];
        let at = 4 * usize::from(opcode);
        log[at..at + 4].copy_from_slice(&entry.to_le_bytes());
        log
    }

    #[test]
    fn what_is_known_without_a_log() {
        let format = CommandEffects {
            exclusive: true,
            changes_namespaces: true,
            ..NOTHING
        };
        assert_eq!(CommandEffects::of_admin(0x80, &[]), format);
        let sanitize = CommandEffects {
            exclusive: true,
            ..NOTHING
        };
        assert_eq!(CommandEffects::of_admin(0x84, &[]), sanitize);
        for opcode in [0x0d, 0x15] {
            let managed = CommandEffects {
                changes_namespaces: true,
                ..NOTHING
            };
            assert_eq!(CommandEffects::of_admin(opcode, &[]), managed);
        }
        assert_eq!(CommandEffects::of_admin(0xc0, &[]), NOTHING);
    }

    #[test]
    fn what_the_log_says() {
        for opcode in [0x00, 0x09, 0xc0, 0xff] {
            let said = |entry| CommandEffects::of_admin(opcode, &log(opcode, entry));
            // Supported, changes the contents of blocks.
            assert_eq!(said(0b11), NOTHING);
            assert!(said(1 << 2).changes_namespaces);
            assert!(said(1 << 3).changes_namespaces);
            assert!(said(1 << 4).changes_controller);
            for execution in 1..8 {
                assert!(said(execution << 16).exclusive);
                assert!(!said((execution << 16) | (1 << 14)).exclusive);
                assert!(!said((execution << 16) | (1 << 15)).exclusive);
            }
            assert_eq!(
                CommandEffects::of_admin(opcode ^ 1, &log(opcode, !0)),
                NOTHING
            );
        }
    }

    #[test]
    fn known_effects_stay() {
        assert!(CommandEffects::of_admin(0x80, &log(0x80, 1 << 14)).exclusive);
        assert!(!CommandEffects::of_admin(0x82, &log(0x82, 1 << 16)).exclusive);
    }

    #[test]
    fn a_log_that_is_cut_short_says_less() {
        let mut short = log(0xc0, !0);
        short.truncate(4 * 0xc0 + 3);
        assert_eq!(CommandEffects::of_admin(0xc0, &short), NOTHING);
    }

    #[test]
    fn who_only_asks_has_none() {
        for opcode in [0x02, 0x06, 0x0a, 0x18] {
            assert!(!CommandEffects::may_have(opcode));
        }
        for opcode in [0x09, 0x0d, 0x10, 0x15, 0x80, 0x84, 0xc0] {
            assert!(CommandEffects::may_have(opcode));
        }
    }

    /// A log that says `entry` of one command to a namespace.
    fn io_log(opcode: u8, entry: u32) -> Vec<u8> {
        let mut log = vec![0; 4096];
        let at = 1024 + 4 * usize::from(opcode);
        log[at..at + 4].copy_from_slice(&entry.to_le_bytes());
        log
    }

    fn io_permission(opcode: u8, entry: u32) -> Permission {
        IoPermissions::of_log(&io_log(opcode, entry)).of(opcode)
    }

    #[test]
    fn who_may_send_what_is_supported() {
        for opcode in 0..=u8::MAX {
            let supported = match opcode {
                0x7f.. => Permission::SysAdmin,
                0x04 | 0x08 => Permission::Writer,
                _ if opcode % 2 == 1 => Permission::Writer,
                _ => Permission::Opener,
            };
            assert_eq!(io_permission(opcode, 1), supported, "{opcode:#x}");
            // It changes blocks, too.
            let changing = match opcode {
                0x7f.. => Permission::SysAdmin,
                _ => Permission::Writer,
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
                _ => Permission::Opener,
            };
            assert_eq!(io_permission(0x02, 1 | (1 << bit)), expected, "{bit}");
        }
    }

    #[test]
    fn entries_are_of_one_command_and_of_io() {
        let one = IoPermissions::of_log(&io_log(0x02, 1));
        let allowed = (0..=u8::MAX).filter(|opcode| one.of(*opcode) != Permission::SysAdmin);
        assert_eq!(allowed.collect::<Vec<_>>(), [0x02]);
        let admin = IoPermissions::of_log(&log(0x02, 1));
        assert_eq!(admin, IoPermissions::default());
        for short in [0, 1024, 1024 + 4 * 0x02 + 3] {
            let short = IoPermissions::of_log(&io_log(0x02, !0)[..short]);
            assert_eq!(short, IoPermissions::default());
        }
    }
}
