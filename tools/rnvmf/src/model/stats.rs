// SPDX-License-Identifier: GPL-2.0

//! Statistics of the queues of controllers.

use crate::model::controller::Controller;
use serde::{Deserialize, Deserializer, Serialize};

/// Defines the counters.
macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// The counters of a queue, or the sums of those of several queues.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
        pub(crate) struct Counters {
            $($(#[$doc])* pub(crate) $field: u64,)*
        }

        impl Counters {
            /// Combines each counter with that of `other`.
            fn zip(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
                Self {
                    $($field: combine(self.$field, other.$field),)*
                }
            }
        }
    };
}

counters! {
    /// Read commands.
    reads,
    /// Write commands.
    writes,
    /// Flush commands.
    flushes,
    /// Other commands.
    others,
    /// Bytes read.
    read_bytes,
    /// Bytes written.
    written_bytes,
    /// Commands that completed with an error.
    errors,
    /// Requests that were retried.
    retries,
    /// Commands with in-capsule data.
    in_capsule,
    /// Commands with registered memory.
    registrations,
    /// Remote keys that the target invalidated.
    remote_invalidations,
    /// Remote keys that the host invalidated.
    local_invalidations,
    /// Calls that posted send work requests.
    doorbells,
    /// Send work requests.
    work_requests,
    /// Completions of work requests.
    completions,
    /// Polls of the completion queue that found completions.
    polls,
}

/// The number of commands whose latency is below a limit, and not below that of the bucket before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Bucket {
    /// The limit in nanoseconds; the last bucket has none.
    pub(crate) below: Option<u64>,
    /// Number of commands.
    pub(crate) count: u64,
}

/// Latencies of the commands that were measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Latency {
    /// Whether latency is being measured.
    #[serde(rename(deserialize = "latency"), deserialize_with = "is_one")]
    pub(crate) measured: bool,
    /// Latencies of reads.
    #[serde(default)]
    pub(crate) read_latency: Histogram,
    /// Latencies of writes.
    #[serde(default)]
    pub(crate) write_latency: Histogram,
}

fn is_one<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(u8::deserialize(from)? == 1)
}

impl Latency {
    /// Returns both histograms merged with those of another queue.
    fn plus(self, other: &Self) -> Self {
        Self {
            measured: self.measured || other.measured,
            read_latency: self.read_latency.plus(&other.read_latency),
            write_latency: self.write_latency.plus(&other.write_latency),
        }
    }
}

/// A latency histogram: its buckets that are not empty, lowest limit first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Histogram(pub(crate) Vec<Bucket>);

impl Histogram {
    /// Returns the number of commands.
    pub(crate) fn total(&self) -> u64 {
        self.0.iter().map(|each| each.count).sum()
    }

    /// Returns the bucket of a percentile, given in thousandths; `None` if there are no commands.
    pub(crate) fn percentile(&self, thousandths: u64) -> Option<Bucket> {
        let rank = (u128::from(self.total()) * u128::from(thousandths)).div_ceil(1000);
        let mut passed = 0;
        self.0.iter().copied().find(|each| {
            passed += u128::from(each.count);
            passed >= rank.max(1)
        })
    }

    /// Returns the histogram of the commands of both.
    fn plus(&self, other: &Self) -> Self {
        let mut buckets = self.0.clone();
        for each in &other.0 {
            match buckets.iter_mut().find(|ours| ours.below == each.below) {
                Some(ours) => ours.count += each.count,
                None => buckets.push(*each),
            }
        }
        buckets.sort_by_key(|each| each.below.unwrap_or(u64::MAX));
        Self(buckets)
    }
}

/// Statistics of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct QueueStats {
    /// Number of its controller.
    #[serde(rename = "ctrl_id", skip_serializing)]
    pub(crate) controller_id: u32,
    /// Queue identifier.
    pub(crate) qid: u16,
    /// The counters.
    #[serde(flatten)]
    pub(crate) counters: Counters,
    /// The latencies.
    #[serde(flatten)]
    pub(crate) latency: Latency,
}

/// Statistics of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CtrlStats {
    /// Name of the controller.
    pub(crate) device: String,
    /// Number of the controller.
    pub(crate) id: u32,
    /// The counters of all queues.
    #[serde(flatten)]
    pub(crate) counters: Counters,
    /// The latencies of all queues.
    #[serde(flatten)]
    pub(crate) latency: Latency,
    /// The statistics of each queue.
    pub(crate) queues: Vec<QueueStats>,
}

impl CtrlStats {
    /// Sums up the statistics of the queues of a controller.
    pub(crate) fn of(controller: &Controller, queues: &[QueueStats]) -> Self {
        let own = |each: &&QueueStats| each.controller_id == controller.id;
        let queues: Vec<QueueStats> = queues.iter().filter(own).cloned().collect();
        let counters = queues.iter().map(|each| each.counters);
        let latencies = queues.iter().map(|each| &each.latency);
        Self {
            device: controller.device.clone(),
            id: controller.id,
            counters: counters.fold(Counters::default(), |sum, each| {
                sum.zip(each, u64::wrapping_add)
            }),
            latency: latencies.fold(Latency::default(), Latency::plus),
            queues,
        }
    }

    /// Returns the statistics with the counters reduced to their increase since `before`, but with
    /// the same latencies.
    pub(crate) fn since(&self, before: &[Self]) -> Self {
        let mut stats = self.clone();
        if let Some(before) = before.iter().find(|each| each.id == self.id) {
            stats.counters = stats.counters.zip(before.counters, u64::saturating_sub);
            for queue in &mut stats.queues {
                if let Some(before) = before.queues.iter().find(|each| each.qid == queue.qid) {
                    queue.counters = queue.counters.zip(before.counters, u64::saturating_sub);
                }
            }
        }
        stats
    }
}

#[cfg(test)]
pub(crate) mod tests;
