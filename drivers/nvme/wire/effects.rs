// SPDX-License-Identifier: GPL-2.0

//! What a command to the controller does to others: the log of commands and their effects.
//!
//! NVM Express Base Specification, "Commands Supported and Effects" log page; the decisions are
//! those of the C host (`nvme_command_effects`, `nvme_init_known_nvm_effects`).

/// What has to be done about a command to the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Effects {
    /// No I/O may be under way while it is.
    pub alone: bool,
    /// Namespaces may not be afterwards what they were.
    pub changes_namespaces: bool,
    /// What the controller can do may not be, either.
    pub changes_controller: bool,
}

impl Effects {
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
            alone: execution != 0 || matches!(opcode, Self::FORMAT | Self::SANITIZE),
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

    /// The page begins with an entry of four bytes for each command to the controller.
    fn entry(opcode: u8, log: &[u8]) -> u32 {
        let at = usize::from(opcode).saturating_mul(4);
        match log.get(at..).and_then(|tail| tail.first_chunk()) {
            Some(entry) => u32::from_le_bytes(*entry),
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Effects = Effects {
        alone: false,
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
        let format = Effects {
            alone: true,
            changes_namespaces: true,
            ..NOTHING
        };
        assert_eq!(Effects::of_admin(0x80, &[]), format);
        let sanitize = Effects {
            alone: true,
            ..NOTHING
        };
        assert_eq!(Effects::of_admin(0x84, &[]), sanitize);
        for opcode in [0x0d, 0x15] {
            let managed = Effects {
                changes_namespaces: true,
                ..NOTHING
            };
            assert_eq!(Effects::of_admin(opcode, &[]), managed);
        }
        assert_eq!(Effects::of_admin(0xc0, &[]), NOTHING);
    }

    #[test]
    fn what_the_log_says() {
        for opcode in [0x00, 0x09, 0xc0, 0xff] {
            let said = |entry| Effects::of_admin(opcode, &log(opcode, entry));
            // Supported, changes the contents of blocks.
            assert_eq!(said(0b11), NOTHING);
            assert!(said(1 << 2).changes_namespaces);
            assert!(said(1 << 3).changes_namespaces);
            assert!(said(1 << 4).changes_controller);
            for execution in 1..8 {
                assert!(said(execution << 16).alone);
                assert!(!said((execution << 16) | (1 << 14)).alone);
                assert!(!said((execution << 16) | (1 << 15)).alone);
            }
            assert_eq!(Effects::of_admin(opcode ^ 1, &log(opcode, !0)), NOTHING);
        }
    }

    #[test]
    fn known_effects_stay() {
        assert!(Effects::of_admin(0x80, &log(0x80, 1 << 14)).alone);
        assert!(!Effects::of_admin(0x82, &log(0x82, 1 << 16)).alone);
    }

    #[test]
    fn a_log_that_is_cut_short_says_less() {
        let mut short = log(0xc0, !0);
        short.truncate(4 * 0xc0 + 3);
        assert_eq!(Effects::of_admin(0xc0, &short), NOTHING);
    }

    #[test]
    fn who_only_asks_has_none() {
        for opcode in [0x02, 0x06, 0x0a, 0x18] {
            assert!(!Effects::may_have(opcode));
        }
        for opcode in [0x09, 0x0d, 0x10, 0x15, 0x80, 0x84, 0xc0] {
            assert!(Effects::may_have(opcode));
        }
    }
}
