// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::model::controller::tests::live;
use crate::nlattr::tests::{attributes, bytes, nest, number};

/// Buckets; that of `u64::MAX` has no limit.
pub(crate) fn histogram(buckets: &[(u64, u64)]) -> Histogram {
    let bucket = |&(below, count): &(u64, u64)| Bucket {
        below: (below != u64::MAX).then_some(below),
        count,
    };
    Histogram(buckets.iter().map(bucket).collect())
}

/// A queue that has done a little, in numbers that differ.
pub(crate) fn queue(qid: u16) -> QueueStats {
    let n = u64::from(qid) * 100;
    QueueStats {
        controller_id: 0,
        qid,
        counters: Counters {
            reads: n + 1,
            writes: n + 2,
            flushes: n + 3,
            others: n + 4,
            read_bytes: (n + 1) << 12,
            written_bytes: (n + 2) << 40,
            errors: n + 5,
            retries: n + 6,
            in_capsule: n + 7,
            registrations: n + 8,
            remote_invalidations: n + 9,
            local_invalidations: n + 10,
            doorbells: n + 11,
            work_requests: n + 12,
            completions: 30 * (n + 13),
            polls: 10 * (n + 13),
        },
        latency: Latency {
            measured: true,
            read_latency: histogram(&[(65_536, 12 + n), (98_304, 900), (131_072, 88)]),
            write_latency: histogram(&[(u64::MAX, 1)]),
        },
    }
}

fn bucket(id: u16, below: Option<u32>, count: u32) -> Vec<u8> {
    let below = below.map(|below| number(latency_bucket::BELOW, below));
    let count = number(latency_bucket::COUNT, count);
    nest(id, below.into_iter().chain([count]).collect())
}

#[test]
fn percentiles_are_of_all() {
    let times = histogram(&[(1024, 990), (2048, 9), (u64::MAX, 1)]);
    assert_eq!(times.total(), 1000);
    let below = |thousandths| times.percentile(thousandths).unwrap().below;
    assert_eq!(below(0), Some(1024));
    assert_eq!(below(500), Some(1024));
    assert_eq!(below(990), Some(1024));
    assert_eq!(below(991), Some(2048));
    assert_eq!(below(999), Some(2048));
    assert_eq!(below(1000), None);
    assert_eq!(Histogram::default().percentile(500), None);
}

#[test]
fn histograms_add_up() {
    let one = histogram(&[(1024, 1), (4096, 2)]);
    let other = histogram(&[(2048, 3), (4096, 4), (u64::MAX, 5)]);
    let both = histogram(&[(1024, 1), (2048, 3), (4096, 6), (u64::MAX, 5)]);
    assert_eq!(one.plus(&other), both);
}

#[test]
fn reads_everything() {
    let message = attributes(vec![
        number(attribute::CTRL_ID, 0u32),
        number(attribute::QID, 1u16),
        number(attribute::READS, 101u32),
        number(attribute::WRITES, 102u32),
        number(attribute::FLUSHES, 103u32),
        number(attribute::OTHERS, 104u32),
        number(attribute::READ_BYTES, 101u32 << 12),
        bytes(attribute::WRITTEN_BYTES, &(102u64 << 40).to_ne_bytes()),
        number(attribute::ERRORS, 105u32),
        number(attribute::RETRIES, 106u32),
        number(attribute::IN_CAPSULE, 107u32),
        number(attribute::REGISTRATIONS, 108u32),
        number(attribute::REMOTE_INVALIDATIONS, 109u32),
        number(attribute::LOCAL_INVALIDATIONS, 110u32),
        number(attribute::DOORBELLS, 111u32),
        number(attribute::WORK_REQUESTS, 112u32),
        number(attribute::COMPLETIONS, 30u32 * 113),
        number(attribute::POLLS, 10u32 * 113),
        number(attribute::LATENCY, 1u8),
        bucket(attribute::READ_LATENCY, Some(98_304), 900),
        bucket(attribute::READ_LATENCY, Some(65_536), 112),
        bucket(attribute::READ_LATENCY, Some(131_072), 88),
        bucket(attribute::WRITE_LATENCY, None, 1),
    ]);
    assert_eq!(QueueStats::read(&message).unwrap(), queue(1));
    let message = attributes(vec![
        number(attribute::CTRL_ID, 0u32),
        number(attribute::QID, 1u16),
    ]);
    assert_eq!(
        QueueStats::read(&message).unwrap_err().to_string(),
        "the kernel left out the attribute reads"
    );
}

#[test]
fn queues_add_up() {
    let foreign = QueueStats {
        controller_id: 1,
        ..queue(1)
    };
    let stats = CtrlStats::of(&live(), &[queue(0), foreign, queue(2)]);
    assert_eq!(stats.queues, [queue(0), queue(2)]);
    assert_eq!(stats.counters.reads, 1 + 201);
    assert_eq!(stats.counters.polls, 130 + 2130);
}

#[test]
fn what_came_to_it() {
    let before = CtrlStats::of(&live(), &[queue(0)]);
    let now = CtrlStats::of(&live(), &[queue(1), queue(0)]);
    let came = now.since(&[before]);
    // The first queue was not there before.
    assert_eq!(came.queues[0].counters, queue(1).counters);
    assert_eq!(came.queues[1].counters, Counters::default());
    assert_eq!(came.counters.reads, 101);
    assert_eq!(now.since(&[]), now);
}
