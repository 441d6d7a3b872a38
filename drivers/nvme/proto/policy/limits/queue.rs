// SPDX-License-Identifier: GPL-2.0

//! Number and size of queues.

use core::fmt;
use core::num::NonZeroU16;

/// Entries of the admin queue.
pub const ADMIN_ENTRIES: u16 = 32;

/// Largest number of entries of an I/O queue over RDMA.
pub const MAX_ENTRIES: u16 = 256;

/// Smallest number of entries of an I/O queue: one stays empty, one is for Connect, one for I/O.
pub const MIN_ENTRIES: u16 = 3;

/// Size of an I/O queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct QueueSize(u16);

/// Limits on the size of an I/O queue, in entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeInputs {
    /// Size that the user requests.
    pub requested: u16,
    /// Size that the RDMA device supports: [`device_entries`].
    pub device: u16,
    /// [`crate::format::property::Capabilities::max_queue_entries_zero_based`].
    pub max_entries_zero_based: u16,
    /// [`crate::format::identify::Controller::max_commands`]. NVMe over Fabrics requires it, but
    /// some targets report 0, which is not a limit.
    pub max_commands: u16,
}

impl QueueSize {
    /// Returns the largest size that all limits allow.
    ///
    /// # Errors
    ///
    /// [`QueueTooSmall`] if a limit is below [`MIN_ENTRIES`].
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

    /// Returns the entries of the queue.
    pub const fn entries(self) -> u16 {
        self.0
    }

    /// Returns the zero-based size, as in Connect and in private data. It is also the largest
    /// number of outstanding commands.
    pub const fn zero_based(self) -> u16 {
        self.0.saturating_sub(1)
    }
}

/// A limit on the size of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SizeLimit {
    /// Size that the user requests.
    Requested,
    /// Size that the RDMA device supports.
    Device,
    /// Size that the controller supports (MQES).
    Controller,
    /// Outstanding commands that the controller supports (MAXCMD).
    Commands,
}

/// A limit that is too low for I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueTooSmall {
    /// Entries that the limit allows.
    pub entries: u16,
    /// The limit.
    pub limit: SizeLimit,
}

impl fmt::Display for QueueTooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = match self.limit {
            SizeLimit::Requested => "requested queue size",
            SizeLimit::Device => "queue size of the RDMA device",
            SizeLimit::Controller => "queue size of the controller",
            SizeLimit::Commands => "MAXCMD of the controller",
        };
        write!(f, "{limit} {} is less than {MIN_ENTRIES}", self.entries)
    }
}

/// Returns the entries of a queue that an RDMA device supports.
///
/// The queue pair needs two sends and three completions for each entry. This allows for a third send,
/// the invalidation of a key, and its completion. The drain of a queue takes one more of each.
pub fn device_entries(max_send_requests: u32, max_completions: u32) -> u16 {
    let sends = max_send_requests.saturating_sub(1) / 3;
    let completions = max_completions.saturating_sub(1) / 4;
    u16::try_from(sends.min(completions)).unwrap_or(u16::MAX)
}

/// Returns how many of the requested I/O queues the controller grants, from the result of
/// [`crate::format::sqe::Feature::NumberOfQueues`]. The controller may offer more.
pub fn granted(requested: NonZeroU16, result: u32) -> NonZeroU16 {
    let [low0, low1, high0, high1] = result.to_le_bytes();
    let submission = u16::from_le_bytes([low0, low1]);
    let completion = u16::from_le_bytes([high0, high1]);
    // Both are zero-based.
    requested.min(NonZeroU16::MIN.saturating_add(submission.min(completion)))
}

#[cfg(test)]
mod tests;
