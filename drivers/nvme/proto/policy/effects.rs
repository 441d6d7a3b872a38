// SPDX-License-Identifier: GPL-2.0

//! Effects of a user's admin command on I/O, namespaces and the controller.
//!
//! The decisions are those of the C host (`nvme_command_effects()`,
//! `nvme_init_known_nvm_effects()`).

use crate::format::effects_log::EffectsLog;
use crate::format::sqe::Command;

/// Action of the host for an admin command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CommandEffects {
    /// No I/O may be in flight while the command executes.
    pub exclusive: bool,
    /// Scan the namespaces after the command.
    pub changes_namespaces: bool,
    /// Capabilities of the controller may have changed after the command.
    pub changes_controller: bool,
}

impl CommandEffects {
    const MANAGEMENT: u8 = 0x0d;
    const ATTACHMENT: u8 = 0x15;
    const FORMAT: u8 = 0x80;
    const SECURITY_RECEIVE: u8 = 0x82;
    const SANITIZE: u8 = 0x84;

    /// Returns whether a command with this opcode may have effects. A command that only reads has
    /// none; of Fabrics commands, a user may only send one that reads.
    pub const fn may_have(opcode: u8) -> bool {
        // Get Log Page, Identify, Get Features, Keep Alive, Property Get.
        !matches!(opcode, 0x02 | 0x06 | 0x0a | 0x18 | Command::FABRICS)
    }

    /// Returns the effects of an admin command: those in the log, and known ones that a log may
    /// lack.
    pub fn of_admin(opcode: u8, log: EffectsLog<'_>) -> Self {
        let entry = log.admin(opcode);
        // Security Receive is restricted relative to other admin commands, not to I/O.
        let restricted = entry.restricts_execution() && opcode != Self::SECURITY_RECEIVE;
        Self {
            exclusive: restricted || matches!(opcode, Self::FORMAT | Self::SANITIZE),
            changes_namespaces: entry.changes_namespaces()
                || matches!(opcode, Self::FORMAT | Self::MANAGEMENT | Self::ATTACHMENT),
            changes_controller: entry.changes_controller(),
        }
    }
}

#[cfg(test)]
mod tests;
