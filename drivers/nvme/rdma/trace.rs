// SPDX-License-Identifier: GPL-2.0

//! Records that a ULP can trace.
//!
//! Each queued command ends once: with its response, or without one if it could not be posted or
//! its queue ended. So each [`QueuedCommand`] is followed by one [`EndedCommand`] with the same
//! queue and command identifier.

use nvme_proto::format::{
    sqe::Command,
    status::{
        Code,
        Status, //
    },
};

/// Queue of a record.
#[derive(Clone, Copy)]
pub struct QueueId {
    /// Number of the controller, as its ULP traces it.
    pub ctrl_id: i32,
    /// Queue identifier; 0 is the admin queue.
    pub qid: u16,
}

/// Source of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CommandSource {
    /// A request of the block layer.
    Request,
    /// A thread that waits for the response, or the ULP's Asynchronous Event Request.
    Transport,
}

/// A command that is about to be posted.
pub struct QueuedCommand {
    /// The queue on which it is posted.
    pub queue: QueueId,
    /// The command, as it is sent.
    pub command: Command,
    /// Size of its data in bytes.
    pub bytes: u32,
    /// Its source.
    pub source: CommandSource,
}

/// A command that ended.
pub struct EndedCommand {
    /// The queue on which it was posted.
    pub queue: QueueId,
    /// The command, as it was sent.
    pub command: Command,
    /// Its source.
    pub source: CommandSource,
    /// Number of commands that were sent for the same request before.
    pub retries: u8,
    /// Its result.
    pub end: CommandEnd,
}

/// Result of a command.
#[derive(Clone, Copy)]
pub struct CommandEnd {
    /// Status of the response, or one that the host sets without a response.
    pub status: Status,
    /// Command specific result of the response, or 0.
    pub result: u64,
}

impl CommandEnd {
    /// The command could not be posted.
    pub const NOT_POSTED: Self = Self {
        status: Status::from_code(Code::HOST_PATH_ERROR),
        result: 0,
    };

    /// The command was in flight when its queue ended.
    pub const QUEUE_GONE: Self = Self {
        status: Status::from_code(Code::HOST_ABORTED),
        result: 0,
    };
}
