// SPDX-License-Identifier: GPL-2.0

//! Checks of commands from user space.

use crate::format::passthru::UserCommand;
use crate::format::sqe::{Command, ALL_NAMESPACES};
use crate::policy::permission::Permission;

/// Reason why the host does not send a command, whatever the permission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassthruError {
    /// The command has flags or metadata, or another namespace than the disk's.
    Invalid,
    /// The command would change state of the controller that the host manages.
    NotSupported,
}

/// Returns the permission that an admin command requires.
pub fn admin_permission(user: &UserCommand) -> Permission {
    if is_plain_identify(user) {
        Permission::Open
    } else {
        Permission::SysAdmin
    }
}

/// Returns the entry of an admin command.
///
/// # Errors
///
/// [`PassthruError`].
pub fn admin_command(user: &UserCommand) -> Result<Command, PassthruError> {
    check_fields(user)?;
    if changes_host_state(user) {
        return Err(PassthruError::NotSupported);
    }
    Ok(user.to_command())
}

/// Returns the entry of an I/O command for the disk of namespace `nsid`.
///
/// # Errors
///
/// [`PassthruError`].
pub fn io_command(user: &UserCommand, nsid: u32) -> Result<Command, PassthruError> {
    if user.nsid != nsid || nsid == ALL_NAMESPACES {
        return Err(PassthruError::Invalid);
    }
    if user.opcode == Command::FABRICS {
        return Err(PassthruError::NotSupported);
    }
    check_fields(user)?;
    Ok(user.to_command())
}

/// Checks that there are no flags, which the host sets, and no metadata, which it does not support.
fn check_fields(user: &UserCommand) -> Result<(), PassthruError> {
    if user.flags != 0 || user.metadata != 0 || user.metadata_length != 0 {
        return Err(PassthruError::Invalid);
    }
    Ok(())
}

/// Returns whether an admin command changes the connection, queues, events or features that the
/// host manages. Commands may change namespaces: see [`crate::policy::effects`].
const fn changes_host_state(user: &UserCommand) -> bool {
    const SET_FEATURES: u8 = 0x09;
    match user.opcode {
        // Create and delete queues, for which Fabrics has other commands.
        0x00 | 0x01 | 0x04 | 0x05 => true,
        // Fabrics commands, except for one that reads. The command type is in place of the NSID.
        Command::FABRICS => user.nsid != Command::PROPERTY_GET as u32,
        // Abort, Asynchronous Event Request.
        0x08 | 0x0c => true,
        // Number of queues, asynchronous events, keep-alive timer, host behavior.
        SET_FEATURES => matches!(user.dwords_10_15[0], 0x07 | 0x0b | 0x0f | 0x16),
        _ => false,
    }
}

/// Returns whether a command reads data that a process needs to compose I/O commands.
const fn is_plain_identify(user: &UserCommand) -> bool {
    const IDENTIFY: u8 = 0x06;
    user.opcode == IDENTIFY && matches!(user.dwords_10_15[0], 0x00 | 0x01 | 0x05 | 0x06 | 0x08)
}

#[cfg(test)]
mod tests;
