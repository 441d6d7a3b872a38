// SPDX-License-Identifier: GPL-2.0

//! How many queues there are, and how large.

use core::fmt;
use core::num::NonZeroU16;

/// Entries of the admin queue.
pub const ADMIN_ENTRIES: u16 = 32;

/// Most entries of an I/O queue over RDMA.
pub const MAX_ENTRIES: u16 = 256;

/// Least entries of an I/O queue: one stays empty, one is for Connect, one for
/// I/O.
pub const MIN_ENTRIES: u16 = 3;

/// Size of an I/O queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct QueueSize(u16);

/// What the size of an I/O queue follows from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeInputs {
    /// What the user asks for.
    pub requested: u16,
    /// What the RDMA device can have: see [`device_entries`].
    pub device: u16,
    /// [`crate::format::property::Capabilities::max_queue_entries_zero_based`].
    pub max_entries_zero_based: u16,
    /// [`crate::format::identify::Controller::max_commands`]. Targets have to tell it,
    /// but 0 is known to occur: it is no limit.
    pub max_commands: u16,
}

impl QueueSize {
    /// The greatest size that all allow.
    pub fn negotiate(inputs: &SizeInputs) -> Result<Self, QueueTooSmall> {
        let controller = inputs.max_entries_zero_based.saturating_add(1);
        let commands = if inputs.max_commands == 0 {
            u16::MAX
        } else {
            inputs.max_commands
        };
        let limits = [
            (inputs.requested, SizeLimit::Requested),
            (inputs.device, SizeLimit::Device),
            (controller, SizeLimit::Controller),
            (commands, SizeLimit::Commands),
        ];
        if let Some((entries, limit)) = limits.into_iter().find(|(n, _)| *n < MIN_ENTRIES) {
            return Err(QueueTooSmall { entries, limit });
        }
        let least = limits.into_iter().map(|(entries, _)| entries).min();
        Ok(Self(least.unwrap_or(MAX_ENTRIES).min(MAX_ENTRIES)))
    }

    /// Entries of the queue.
    #[must_use]
    pub const fn entries(self) -> u16 {
        self.0
    }

    /// The size as Connect and private data have it, which is also the number
    /// of commands that can be outstanding.
    #[must_use]
    pub const fn zero_based(self) -> u16 {
        self.0.saturating_sub(1)
    }
}

/// What limits the size of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SizeLimit {
    /// The user's wish.
    Requested,
    /// The RDMA device.
    Device,
    /// The size of the controller's queues.
    Controller,
    /// The number of commands that the controller takes.
    Commands,
}

/// A queue that would be too small for I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueTooSmall {
    /// Entries that it could have.
    pub entries: u16,
    /// What allows no more.
    pub limit: SizeLimit,
}

impl fmt::Display for QueueTooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = match self.limit {
            SizeLimit::Requested => "requested queue size",
            SizeLimit::Device => "queue size of the RDMA device",
            SizeLimit::Controller => "queue size of the controller",
            SizeLimit::Commands => "number of commands that the controller takes",
        };
        write!(f, "{limit} {} is less than {MIN_ENTRIES}", self.entries)
    }
}

/// Entries of a queue that an RDMA device has room for, of which each needs
/// three sends (registration, command, invalidation) and four completions
/// (those and the response's), and a queue one of each to be drained with.
#[must_use]
pub fn device_entries(max_send_requests: u32, max_completions: u32) -> u16 {
    let sends = max_send_requests.saturating_sub(1) / 3;
    let completions = max_completions.saturating_sub(1) / 4;
    u16::try_from(sends.min(completions)).unwrap_or(u16::MAX)
}

/// How many of the I/O queues asked for a controller grants, from the result
/// of [`crate::format::sqe::Feature::NumberOfQueues`]: it may offer more.
#[must_use]
pub fn granted(requested: NonZeroU16, result: u32) -> NonZeroU16 {
    let [low0, low1, high0, high1] = result.to_le_bytes();
    let submission = u16::from_le_bytes([low0, low1]);
    let completion = u16::from_le_bytes([high0, high1]);
    // Both are less one.
    requested.min(NonZeroU16::MIN.saturating_add(submission.min(completion)))
}

#[cfg(test)]
mod tests;
