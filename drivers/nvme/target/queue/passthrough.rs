// SPDX-License-Identifier: GPL-2.0

//! Commands of passthrough subsystems.

use crate::{
    rdma::DNR,
    settings::parameters, //
};
use kernel::prelude::*;
use nvme_proto::{
    format::sqe::Command,
    policy::passthru_length::{
        self,
        BlockFormat,
        PassthruQueue,
        UnknownLength, //
    },
};
use nvmet::{
    PassthroughCommand,
    PassthroughQueue, //
};

/// Checks that the controller transfers no more data than the command has.
///
/// # Errors
///
/// The status of a command that is refused. If the length is not known, the parameter
/// `passthru_unknown` decides.
#[cold]
pub(super) fn check(passed: &PassthroughCommand) -> Result<(), u16> {
    let command = Command::from_bytes(passed.command);
    // nvmet executes these.
    if command.opcode() == Command::FABRICS {
        return Ok(());
    }
    let queue = match &passed.queue {
        PassthroughQueue::Admin => PassthruQueue::Admin,
        PassthroughQueue::Io(format) => {
            PassthruQueue::Io(format.as_ref().map(|format| BlockFormat {
                size: format.block_size,
                metadata: format.metadata,
            }))
        }
    };
    let unknown = match parameters::passthru_unknown.get() {
        true => UnknownLength::Allow,
        false => UnknownLength::Refuse,
    };
    passthru_length::check(&command, queue, passed.length, unknown).map_err(|code| code.get() | DNR)
}
