// SPDX-License-Identifier: GPL-2.0

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
        // Queues beyond those requested are not used.
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
