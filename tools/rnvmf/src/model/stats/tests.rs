// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::model::controller::tests::live;
use serde_json::{from_value, json};

/// Returns a histogram; the limit `u64::MAX` stands for none.
pub(crate) fn histogram(buckets: &[(u64, u64)]) -> Histogram {
    let bucket = |&(below, count): &(u64, u64)| Bucket {
        below: (below != u64::MAX).then_some(below),
        count,
    };
    Histogram(buckets.iter().map(bucket).collect())
}

/// Returns statistics of a queue, with a different number for each counter.
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
    let message = json!({
        "ctrl_id": 0,
        "name": "rnvmf0",
        "qid": 1,
        "reads": 101,
        "writes": 102,
        "flushes": 103,
        "others": 104,
        "read_bytes": 101 << 12,
        "written_bytes": 102u64 << 40,
        "errors": 105,
        "retries": 106,
        "in_capsule": 107,
        "registrations": 108,
        "remote_invalidations": 109,
        "local_invalidations": 110,
        "doorbells": 111,
        "work_requests": 112,
        "completions": 30 * 113,
        "polls": 10 * 113,
        "latency": 1,
        "read_latency": [
            {"below": 65_536, "count": 112},
            {"below": 98_304, "count": 900},
            {"below": 131_072, "count": 88},
        ],
        "write_latency": [{"count": 1}],
    });
    assert_eq!(from_value::<QueueStats>(message).unwrap(), queue(1));
    let error = from_value::<QueueStats>(json!({"ctrl_id": 0, "qid": 1})).unwrap_err();
    assert_eq!(error.to_string(), "missing field `reads`");
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
    // Queue 1 is new.
    assert_eq!(came.queues[0].counters, queue(1).counters);
    assert_eq!(came.queues[1].counters, Counters::default());
    assert_eq!(came.counters.reads, 101);
    assert_eq!(now.since(&[]), now);
}
