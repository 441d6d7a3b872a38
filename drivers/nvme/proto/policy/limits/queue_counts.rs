// SPDX-License-Identifier: GPL-2.0

//! What the I/O queues of a controller are for.
//!
//! A host may have queues for writes only, so that reads do not wait behind them, and queues
//! that it polls. Targets know nothing of that: to them all are the same.

use core::num::NonZeroU16;

/// So many I/O queues for what. By their number, those for writes come first, and those that
/// are polled last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoQueueCounts {
    io: NonZeroU16,
    write: u16,
    poll: u16,
}

/// What [`IoQueueCounts::requested`] follows from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueOptions {
    /// CPUs that are online.
    pub online_cpus: u32,
    /// Queues that the user wants; `None` for one a CPU.
    pub nr_io_queues: Option<NonZeroU16>,
    /// Queues for writes that the user wants.
    pub nr_write_queues: Option<NonZeroU16>,
    /// Queues to be polled that the user wants.
    pub nr_poll_queues: Option<NonZeroU16>,
}

/// Whether somebody polls for the requests of a hardware queue of blk-mq.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HctxType {
    /// Nobody does.
    Default,
    /// Somebody does (`HCTX_TYPE_POLL`).
    Poll,
}

impl IoQueueCounts {
    /// The counts to request from a controller: of each kind at most one a CPU.
    #[must_use]
    pub fn requested(options: &QueueOptions) -> Self {
        let most = u16::try_from(options.online_cpus).unwrap_or(u16::MAX);
        let most = NonZeroU16::new(most).unwrap_or(NonZeroU16::MIN);
        let at_most = |asked: Option<NonZeroU16>| asked.map_or(0, |asked| asked.min(most).get());
        let io = options.nr_io_queues.map_or(most, |asked| asked.min(most));
        // All of them have a number of 16 bits.
        let left = u16::MAX.saturating_sub(io.get());
        let write = at_most(options.nr_write_queues).min(left);
        let poll = at_most(options.nr_poll_queues).min(left.saturating_sub(write));
        Self { io, write, poll }
    }

    /// The same with as many queues as the controller grants: as the C host shares them out,
    /// there are queues for writes only if those for reads are complete, and polled ones if
    /// some are left.
    #[must_use]
    pub fn granted(self, granted: NonZeroU16) -> Self {
        let io = self.io.min(granted);
        let left = granted.get().saturating_sub(io.get());
        let write = self.write.min(left);
        let poll = self.poll.min(left.saturating_sub(write));
        Self { io, write, poll }
    }

    /// How many there are in all.
    #[must_use]
    pub fn total(&self) -> NonZeroU16 {
        self.non_polled().saturating_add(self.poll)
    }

    /// Queues for all but what the others are for.
    #[must_use]
    pub fn io(&self) -> u16 {
        self.io.get()
    }

    /// Queues for writes. If there are some, the first kind is for reads only.
    #[must_use]
    pub fn write(&self) -> u16 {
        self.write
    }

    /// Queues that are polled.
    #[must_use]
    pub fn poll(&self) -> u16 {
        self.poll
    }

    /// Whether the queue `index`, counted from 0, is polled.
    #[must_use]
    pub fn is_polled(&self, index: u16) -> bool {
        index >= self.non_polled().get()
    }

    /// The queue, counted from 0, that serves hardware queue `index` of the disks.
    ///
    /// It has the same number if the disks have the same queues. If they do not yet, hardware
    /// queues share one, and one of [`HctxType::Default`] has no polled queue.
    #[must_use]
    pub fn map_hctx(&self, index: u16, kind: HctxType) -> u16 {
        let first = self.non_polled().get();
        let polled = index.saturating_sub(first).checked_rem(self.poll);
        match (kind, polled) {
            (HctxType::Poll, Some(polled)) => first.saturating_add(polled),
            _ => index.checked_rem(first).unwrap_or(0),
        }
    }

    /// Queues that are not polled, which come first.
    fn non_polled(&self) -> NonZeroU16 {
        self.io.saturating_add(self.write)
    }
}

#[cfg(test)]
mod tests;
