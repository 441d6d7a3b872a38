// SPDX-License-Identifier: GPL-2.0

//! How the data of a command is transferred, and how much of it by a passthrough command.

use crate::{
    rdma::DNR,
    settings::parameters, //
};
use kernel::prelude::*;
use nvme_proto::{
    format::sqe::{
        Command,
        Direction,
        IoOp, //
    },
    policy::passthru_length::{
        self,
        BlockFormat,
        PassthruQueue,
        UnknownLength, //
    },
};
use nvmet::{
    PassthroughCommand,
    PassthroughQueue,
    Sgl, //
};

/// Direction and means of a command's data transfer.
#[derive(Clone, Copy)]
pub(super) enum DataTransfer {
    /// By RDMA READ, before the command is executed.
    FromHost,
    /// By RDMA WRITE, after nvmet has filled all of it.
    Filled,
    /// By RDMA WRITE, after nvmet may have filled only a part.
    MaybePartial,
}

impl DataTransfer {
    /// Returns how the data of a command of queue `queue_id` is transferred. `is_whole` tells whether
    /// a read that succeeds has as much data as the host expects.
    ///
    /// Only reads of a namespace fill all of their data. A log page, for example, may be shorter than
    /// the host asks for.
    #[inline(always)]
    pub(super) fn of(command: &Command, queue_id: u16, is_whole: impl FnOnce() -> bool) -> Self {
        match (command.direction(), command.io_op(queue_id)) {
            (Direction::ToTarget, _) => Self::FromHost,
            (Direction::FromTarget, IoOp::Read) if is_whole() => Self::Filled,
            (Direction::FromTarget, _) => Self::MaybePartial,
        }
    }

    /// Allocates the memory of the target. Whatever is written to the host is not left over from
    /// others.
    #[inline(always)]
    pub(super) fn allocate(self, length: u32) -> Result<Sgl> {
        match self {
            Self::FromHost | Self::Filled => Sgl::new(length),
            Self::MaybePartial => Sgl::zeroed(length),
        }
    }
}

/// Checks that the controller transfers no more data than the command has.
///
/// # Errors
///
/// The status of a command that is refused. If the length is not known, the parameter
/// `passthru_unknown` decides.
pub(super) fn check_passthrough(passed: &PassthroughCommand) -> Result<(), u16> {
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
