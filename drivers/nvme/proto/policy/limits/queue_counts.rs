// SPDX-License-Identifier: GPL-2.0

//! Use of the I/O queues of a controller.
//!
//! A host may have queues for writes only, so that reads do not wait behind writes, and queues that
//! it polls. The target does not distinguish them.

use core::num::NonZeroU16;

/// Number of I/O queues for each use. By queue number, those for writes come first and polled ones
/// last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoQueueCounts {
    io: NonZeroU16,
    write: u16,
    poll: u16,
}

/// Input of [`IoQueueCounts::requested`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueOptions {
    /// Online CPUs.
    pub online_cpus: u32,
    /// Queues that the user requests; `None` for one per CPU.
    pub nr_io_queues: Option<NonZeroU16>,
    /// Queues for writes that the user requests.
    pub nr_write_queues: Option<NonZeroU16>,
    /// Polled queues that the user requests.
    pub nr_poll_queues: Option<NonZeroU16>,
}

/// Type of a hardware queue of blk-mq.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HctxType {
    /// Interrupts signal completions (`HCTX_TYPE_DEFAULT`, `HCTX_TYPE_READ`).
    Default,
    /// Threads poll for completions (`HCTX_TYPE_POLL`).
    Poll,
}

impl IoQueueCounts {
    /// Returns the counts to request from a controller: at most one queue per CPU for each use.
    pub fn requested(options: &QueueOptions) -> Self {
        let most = u16::try_from(options.online_cpus).unwrap_or(u16::MAX);
        let most = NonZeroU16::new(most).unwrap_or(NonZeroU16::MIN);
        let at_most = |asked: Option<NonZeroU16>| asked.map_or(0, |asked| asked.min(most).get());
        let io = options.nr_io_queues.map_or(most, |asked| asked.min(most));
        // Queue identifiers have 16 bits.
        let left = u16::MAX.saturating_sub(io.get());
        let write = at_most(options.nr_write_queues).min(left);
        let poll = at_most(options.nr_poll_queues).min(left.saturating_sub(write));
        Self { io, write, poll }
    }

    /// Returns the counts for the number of queues that the controller grants.
    ///
    /// As in the C host, queues for writes get what is left after the first kind, and polled queues
    /// what is left after both.
    pub fn granted(self, granted: NonZeroU16) -> Self {
        let io = self.io.min(granted);
        let left = granted.get().saturating_sub(io.get());
        let write = self.write.min(left);
        let poll = self.poll.min(left.saturating_sub(write));
        Self { io, write, poll }
    }

    /// Returns the number of all queues.
    pub fn total(&self) -> NonZeroU16 {
        self.non_polled().saturating_add(self.poll)
    }

    /// Returns the number of queues for reads and, if there are none for writes only, for writes.
    pub fn io(&self) -> u16 {
        self.io.get()
    }

    /// Returns the number of queues for writes only.
    pub fn write(&self) -> u16 {
        self.write
    }

    /// Returns the number of polled queues.
    pub fn poll(&self) -> u16 {
        self.poll
    }

    /// Returns whether queue `index`, counted from 0, is polled.
    pub fn is_polled(&self, index: u16) -> bool {
        index >= self.non_polled().get()
    }

    /// Returns the queue, counted from 0, that serves hardware queue `index` of the disks.
    ///
    /// The numbers are the same if the disks have the same queues as the controller. Until then
    /// hardware queues share queues, and one of [`HctxType::Default`] never gets a polled queue.
    pub fn map_hctx(&self, index: u16, kind: HctxType) -> u16 {
        let first = self.non_polled().get();
        let polled = index.saturating_sub(first).checked_rem(self.poll);
        match (kind, polled) {
            (HctxType::Poll, Some(polled)) => first.saturating_add(polled),
            _ => index.checked_rem(first).unwrap_or(0),
        }
    }

    /// Returns the number of queues that are not polled, which come first.
    fn non_polled(&self) -> NonZeroU16 {
        self.io.saturating_add(self.write)
    }
}

#[cfg(test)]
mod tests;
