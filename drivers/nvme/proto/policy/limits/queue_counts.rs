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
mod tests {
    use super::*;

    fn queues(count: u16) -> Option<NonZeroU16> {
        NonZeroU16::new(count)
    }

    fn counts(io: u16, write: u16, poll: u16) -> IoQueueCounts {
        IoQueueCounts {
            io: queues(io).unwrap(),
            write,
            poll,
        }
    }

    #[test]
    fn requested() {
        for (cpus, io, write, poll, expected) in [
            (4, 0, 0, 0, (4, 0, 0)),
            (4, 2, 0, 0, (2, 0, 0)),
            (4, 9, 9, 9, (4, 4, 4)),
            (4, 0, 1, 2, (4, 1, 2)),
            (4, 1, 0, 3, (1, 0, 3)),
            (0, 0, 0, 0, (1, 0, 0)),
            (0, 5, 5, 5, (1, 1, 1)),
            (100_000, 0, 0, 0, (65535, 0, 0)),
            (100_000, 0, 7, 7, (65535, 0, 0)),
            (100_000, 65530, 3, 7, (65530, 3, 2)),
        ] {
            let request = IoQueueCounts::requested(&QueueOptions {
                online_cpus: cpus,
                nr_io_queues: queues(io),
                nr_write_queues: queues(write),
                nr_poll_queues: queues(poll),
            });
            assert_eq!(
                (request.io(), request.write(), request.poll()),
                expected,
                "{cpus} CPUs"
            );
            let total = u32::from(request.io()) + u32::from(request.write());
            let total = total + u32::from(request.poll());
            assert_eq!(u32::from(request.total().get()), total);
        }
    }

    #[test]
    fn as_many_as_are_granted() {
        for (wish, granted, expected) in [
            ((2, 0, 0), 2, (2, 0, 0)),
            ((2, 0, 0), 1, (1, 0, 0)),
            ((2, 1, 1), 4, (2, 1, 1)),
            ((2, 1, 1), 3, (2, 1, 0)),
            ((2, 1, 1), 2, (2, 0, 0)),
            ((2, 1, 1), 1, (1, 0, 0)),
            ((2, 4, 1), 4, (2, 2, 0)),
            ((2, 0, 3), 4, (2, 0, 2)),
            ((2, 0, 3), 2, (2, 0, 0)),
            ((1, 0, 3), 2, (1, 0, 1)),
            // More than was asked for is not used.
            ((1, 1, 1), 9, (1, 1, 1)),
        ] {
            let (io, write, poll) = wish;
            let now = counts(io, write, poll).granted(queues(granted).unwrap());
            assert_eq!(
                (now.io(), now.write(), now.poll()),
                expected,
                "{granted} of {wish:?}"
            );
            assert!(now.total().get() <= granted);
        }
    }

    #[test]
    fn polled_ones_come_last() {
        let all = counts(2, 1, 2);
        let polled: Vec<bool> = (0..5).map(|index| all.is_polled(index)).collect();
        assert_eq!(polled, [false, false, false, true, true]);
    }

    #[test]
    fn disks_that_have_the_same_queues_have_their_own() {
        for all in [counts(1, 0, 0), counts(2, 1, 2), counts(3, 0, 1)] {
            for index in 0..all.total().get() {
                let kind = if all.is_polled(index) {
                    HctxType::Poll
                } else {
                    HctxType::Default
                };
                assert_eq!(all.map_hctx(index, kind), index);
            }
        }
    }

    #[test]
    fn what_nobody_polls_for_interrupts() {
        let all_counts = [counts(1, 0, 0), counts(2, 1, 2), counts(1, 1, 1)];
        for now in all_counts {
            for index in 0..300 {
                let queue = now.map_hctx(index, HctxType::Default);
                assert!(queue < now.total().get() && !now.is_polled(queue));
                let queue = now.map_hctx(index, HctxType::Poll);
                assert!(queue < now.total().get());
                assert_eq!(now.is_polled(queue), now.poll() > 0);
            }
        }
    }
}
