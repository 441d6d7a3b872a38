// SPDX-License-Identifier: GPL-2.0

//! What a ULP can trace of commands.
//!
//! A command that is queued has one end: its response, or none when it could not be posted or its
//! queue went. So each [`QueuedCommand`] has one [`EndedCommand`] with the same queue and
//! identifier.

use nvme_proto::format::{
    sqe::Command,
    status::{
        Code,
        Status, //
    },
};

/// The queue that a record is about.
#[derive(Clone, Copy)]
pub struct QueueId {
    /// The controller, by the number that its ULP traces.
    pub ctrl_id: i32,
    /// The queue; 0 is the admin queue.
    pub qid: u16,
}

/// Where a command comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CommandSource {
    /// A request of the block layer.
    Request,
    /// A thread that waits for the response, or the ULP's request for asynchronous events.
    Transport,
}

/// A command that is about to be posted.
pub struct QueuedCommand {
    /// The queue that it is posted on.
    pub queue: QueueId,
    /// The command, as it is sent.
    pub command: Command,
    /// Bytes of its data.
    pub bytes: u32,
    /// Where it comes from.
    pub source: CommandSource,
}

/// A command that is over.
pub struct EndedCommand {
    /// The queue that it was posted on.
    pub queue: QueueId,
    /// The command, as it was sent.
    pub command: Command,
    /// Where it comes from.
    pub source: CommandSource,
    /// Commands that were sent for the same request before this one.
    pub retries: u8,
    /// How it ended.
    pub end: CommandEnd,
}

/// How a command ended.
#[derive(Clone, Copy)]
pub struct CommandEnd {
    /// The status of the response, or one that stands for a missing response.
    pub status: Status,
    /// The result of the response, or 0.
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
