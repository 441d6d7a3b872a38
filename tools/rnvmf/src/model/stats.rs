// SPDX-License-Identifier: GPL-2.0

//! What the queues of controllers have done, as the kernel counts it.

use crate::model::controller::Controller;
use crate::nlattr::{Attributes, Malformed};
use crate::uapi::{latency_bucket, stats as attribute};
use serde::Serialize;

/// Defines the numbers, each with the attribute that it is in.
macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident: $attribute:ident, $name:literal;)*) => {
        /// The numbers of a queue, or of several together.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub(crate) struct Counters {
            $($(#[$doc])* pub(crate) $field: u64,)*
        }

        impl Counters {
            /// Read the attributes of a reply.
            fn read(from: &Attributes) -> Result<Self, Malformed> {
                Ok(Self {
                    $($field: from.require($name, from.uint(attribute::$attribute)?)?,)*
                })
            }

            /// Both together.
            pub(crate) fn plus(self, other: Self) -> Self {
                Self {
                    $($field: self.$field.wrapping_add(other.$field),)*
                }
            }

            /// What came to it since then; nothing if that was of another controller.
            pub(crate) fn since(self, before: Self) -> Self {
                Self {
                    $($field: self.$field.saturating_sub(before.$field),)*
                }
            }
        }
    };
}

counters! {
    /// Read commands.
    reads: READS, "reads";
    /// Write commands.
    writes: WRITES, "writes";
    /// Flush commands.
    flushes: FLUSHES, "flushes";
    /// Commands of other kinds.
    others: OTHERS, "others";
    /// Bytes that were read.
    read_bytes: READ_BYTES, "read-bytes";
    /// Bytes that were written.
    written_bytes: WRITTEN_BYTES, "written-bytes";
    /// Commands that were answered with an error.
    errors: ERRORS, "errors";
    /// Requests that were sent again.
    retries: RETRIES, "retries";
    /// Commands with data in their capsule.
    in_capsule: IN_CAPSULE, "in-capsule";
    /// Commands with a key for their data.
    registrations: REGISTRATIONS, "registrations";
    /// Keys that the target invalidated.
    remote_invalidations: REMOTE_INVALIDATIONS, "remote-invalidations";
    /// Keys that the host invalidated.
    local_invalidations: LOCAL_INVALIDATIONS, "local-invalidations";
    /// Calls that posted.
    doorbells: DOORBELLS, "doorbells";
    /// What they posted.
    work_requests: WORK_REQUESTS, "work-requests";
    /// Completions.
    completions: COMPLETIONS, "completions";
    /// Polls that found some.
    polls: POLLS, "polls";
}

/// Commands that took between the limit of the bucket before and that of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Bucket {
    /// The limit in nanoseconds; the last bucket has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) below: Option<u64>,
    /// How many there are.
    pub(crate) count: u64,
}

/// How many commands took how long, shortest first; no bucket is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Histogram(pub(crate) Vec<Bucket>);

impl Histogram {
    /// Read the buckets of a reply.
    fn read(from: &Attributes, id: u16) -> Result<Self, Malformed> {
        let nests = from.nests(id)?;
        let bucket = |nest: &Attributes| {
            Ok(Bucket {
                below: nest.uint(latency_bucket::BELOW)?,
                count: nest.require("count", nest.uint(latency_bucket::COUNT)?)?,
            })
        };
        let mut buckets = nests.iter().map(bucket).collect::<Result<Vec<_>, _>>()?;
        buckets.sort_by_key(|each| each.below.unwrap_or(u64::MAX));
        Ok(Self(buckets))
    }

    /// How many commands there are.
    pub(crate) fn total(&self) -> u64 {
        self.0.iter().map(|each| each.count).sum()
    }

    /// The bucket in which so many of a thousand have ended; none of nothing.
    pub(crate) fn percentile(&self, thousandths: u64) -> Option<Bucket> {
        // Of the last one that counts.
        let rank = (u128::from(self.total()) * u128::from(thousandths)).div_ceil(1000);
        let mut ended = 0;
        self.0.iter().copied().find(|each| {
            ended += u128::from(each.count);
            ended >= rank.max(1)
        })
    }

    /// Both together.
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

/// The times that commands took, while they were measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Latency {
    /// They are being measured.
    pub(crate) measured: bool,
    /// Of reads.
    pub(crate) read_latency: Histogram,
    /// Of writes.
    pub(crate) write_latency: Histogram,
}

impl Latency {
    fn read(from: &Attributes) -> Result<Self, Malformed> {
        Ok(Self {
            measured: from.u8(attribute::LATENCY)?.is_some_and(|on| on != 0),
            read_latency: Histogram::read(from, attribute::READ_LATENCY)?,
            write_latency: Histogram::read(from, attribute::WRITE_LATENCY)?,
        })
    }

    /// Both together.
    fn plus(self, other: &Self) -> Self {
        Self {
            measured: self.measured || other.measured,
            read_latency: self.read_latency.plus(&other.read_latency),
            write_latency: self.write_latency.plus(&other.write_latency),
        }
    }
}

/// What a queue has done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct QueueStats {
    /// Number of its controller.
    #[serde(skip)]
    pub(crate) controller_id: u32,
    /// Its number.
    pub(crate) qid: u16,
    /// The numbers.
    #[serde(flatten)]
    pub(crate) counters: Counters,
    /// How long it took.
    #[serde(flatten)]
    pub(crate) latency: Latency,
}

impl QueueStats {
    /// Read the attributes of a reply.
    pub(crate) fn read(from: &Attributes) -> Result<Self, Malformed> {
        Ok(Self {
            controller_id: from.require("ctrl-id", from.u32(attribute::CTRL_ID)?)?,
            qid: from.require("qid", from.u16(attribute::QID)?)?,
            counters: Counters::read(from)?,
            latency: Latency::read(from)?,
        })
    }
}

/// What the queues of a controller have done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CtrlStats {
    /// Name of the controller.
    pub(crate) device: String,
    /// Its number.
    pub(crate) id: u32,
    /// All queues together.
    #[serde(flatten)]
    pub(crate) counters: Counters,
    /// How long it took.
    #[serde(flatten)]
    pub(crate) latency: Latency,
    /// Each queue.
    pub(crate) queues: Vec<QueueStats>,
}

impl CtrlStats {
    /// What is known of a controller.
    pub(crate) fn of(controller: &Controller, queues: &[QueueStats]) -> Self {
        let queues: Vec<QueueStats> = queues
            .iter()
            .filter(|each| each.controller_id == controller.id)
            .cloned()
            .collect();
        let counters = queues.iter().map(|each| each.counters);
        let latencies = queues.iter().map(|each| &each.latency);
        Self {
            device: controller.device.clone(),
            id: controller.id,
            counters: counters.fold(Counters::default(), Counters::plus),
            latency: latencies.fold(Latency::default(), Latency::plus),
            queues,
        }
    }

    /// What came to it since then.
    pub(crate) fn since(&self, before: &[Self]) -> Self {
        let before = before.iter().find(|each| each.id == self.id);
        let queue = |qid| {
            let queues = before.into_iter().flat_map(|each| &each.queues);
            let mut same = queues.filter(|each| each.qid == qid);
            same.next()
                .map_or(Counters::default(), |each| each.counters)
        };
        Self {
            device: self.device.clone(),
            id: self.id,
            latency: self.latency.clone(),
            counters: (self.counters)
                .since(before.map_or(Counters::default(), |each| each.counters)),
            queues: (self.queues.iter())
                .map(|each| QueueStats {
                    counters: each.counters.since(queue(each.qid)),
                    ..each.clone()
                })
                .collect(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
