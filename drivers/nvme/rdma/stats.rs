// SPDX-License-Identifier: GPL-2.0

//! Counters of one queue.
//!
//! No counter is shared: each queue has its own, on cache lines of their own, that only handlers
//! of its completions change. The handlers run one after the other, on the processor of the
//! queue's completion vector or of the one that polls a polled queue, so no counter needs a locked
//! instruction ([`SingleWriterCounter`]). `CommandStats` collects what a command takes. It is in the
//! command's slot, which one context has at a time, and is added when the command ends. After the
//! drain the ULP's thread adds what is left: no handler runs any more, and those of the next queue
//! of that number do not run yet.
//!
//! The counters belong to the number of a queue, not to a connection: the ULP passes the same
//! [`QueueStats`] to the next queue of that number, and they go on where they were. A reader may
//! see those of a command half added; while no command is in flight they agree.
//!
//! Latencies of reads and writes are counted only while the ULP wants them, as two reads of the
//! clock cost more than all other counters together. Submitters read that from a cache line that
//! hardly ever changes.

use kernel::{
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    },
};
use nvme_proto::{
    format::{sqe::IoOp, status::Status},
    policy::latency::{
        self,
        BUCKETS, //
    },
};
use rrdma::{
    rdma::cq::Completion,
    sync::{
        RelaxedBool, //
        SingleWriterCounter,
    },
};

/// A counter that a user can read.
#[derive(Clone, Copy)]
pub enum Count {
    /// Reads that ended.
    Reads,
    /// Writes that ended.
    Writes,
    /// Flushes that ended.
    Flushes,
    /// All other commands that ended.
    Others,
    /// Bytes of reads that succeeded.
    ReadBytes,
    /// Bytes of writes that succeeded.
    WrittenBytes,
    /// Commands that the target answered with an error.
    Errors,
    /// Requests that were sent again.
    Retries,
    /// Commands with data in their capsule.
    InCapsule,
    /// Memory registrations.
    Registrations,
    /// Keys that the target invalidated.
    RemoteInvalidations,
    /// Keys that this host invalidated.
    LocalInvalidations,
    /// Calls that posted send work requests.
    Doorbells,
    /// Send work requests.
    WorkRequests,
    /// Completions of work requests.
    Completions,
    /// Polls of the completion queue that found completions.
    Polls,
}

/// Commands whose latency is counted.
#[derive(Clone, Copy)]
pub enum TimedCommand {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

/// Access to the counters of a queue, or to the sums of those of several queues.
pub trait ReadStats {
    /// Returns a counter.
    fn count(&self, count: Count) -> u64;

    /// Returns the commands in a [bucket](latency::bucket) of latencies.
    fn latencies(&self, command: TimedCommand, bucket: usize) -> u64;

    /// Returns whether latencies are counted.
    fn counts_latencies(&self) -> bool;
}

/// Commands, by the way of their data.
type DataModeCounters = [SingleWriterCounter; DataMode::COUNT];

/// Commands, by latency.
type Histogram = [SingleWriterCounter; BUCKETS];

/// The counters of one queue.
#[repr(C, align(64))]
pub struct QueueStats {
    /// Commands that ended, by kind. What is a sum of others has no counter of its own.
    commands: [DataModeCounters; IoOp::COUNT],
    /// Commands that were posted and ended only with the queue.
    lost: DataModeCounters,
    /// Bytes of commands that succeeded, by kind.
    bytes: [SingleWriterCounter; IoOp::COUNT],
    errors: SingleWriterCounter,
    retries: SingleWriterCounter,
    remote_invalidations: SingleWriterCounter,
    local_invalidations: SingleWriterCounter,
    doorbells: SingleWriterCounter,
    completions: SingleWriterCounter,
    polls: SingleWriterCounter,
    reads: Histogram,
    writes: Histogram,
    /// Latencies are counted. On another cache line than what changes with each command.
    timed: RelaxedBool,
    qid: u16,
}

/// How a command's data reaches the target, or comes from it.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DataMode {
    /// The command has no data.
    #[default]
    Nothing,
    /// The data follows the command in its capsule.
    InCapsule,
    /// The target reads or writes the data by a key.
    ByKey,
}

impl DataMode {
    const COUNT: usize = Self::ByKey as usize + 1;
}

/// Which work request of a post a command's send is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PostPosition {
    /// The first command that the call posts: it is counted as the doorbell.
    First,
    /// Posted by the same call as the one before.
    Follows,
}

impl PostPosition {
    #[inline]
    fn doorbells(self) -> u64 {
        u64::from(self == Self::First)
    }
}

/// What one command takes, until it ends.
#[derive(Clone, Copy, Default)]
pub(crate) struct CommandStats {
    kind: IoOp,
    /// Set when the data is mapped.
    pub(crate) data_mode: DataMode,
    bytes: u32,
    /// When the command was posted, if its latency is counted.
    began: Option<Instant<Monotonic>>,
}

impl CommandStats {
    /// Begins with a command that is about to be posted.
    #[inline]
    pub(crate) fn new(stats: &QueueStats, kind: IoOp, bytes: u32) -> Self {
        Self {
            began: stats.counts_latencies().then(Instant::now),
            kind,
            data_mode: DataMode::Nothing,
            bytes,
        }
    }
}

/// A command that the target answered.
pub(crate) struct AnsweredCommand<'a> {
    /// What it took.
    pub(crate) stats: &'a CommandStats,
    /// Its place in the post.
    pub(crate) position: PostPosition,
    /// The status of the response.
    pub(crate) status: Status,
    /// The target invalidated the command's key.
    pub(crate) remotely_invalidated: bool,
}

const fn data_mode_counters() -> DataModeCounters {
    [const { SingleWriterCounter::new() }; DataMode::COUNT]
}

impl QueueStats {
    /// Makes the counters of queue `qid`, all 0. `timed` says whether latencies are counted.
    pub fn new(qid: u16, timed: bool) -> impl Init<Self> {
        init!(Self {
            commands: [const { data_mode_counters() }; IoOp::COUNT],
            lost: data_mode_counters(),
            bytes: [const { SingleWriterCounter::new() }; IoOp::COUNT],
            errors: SingleWriterCounter::new(),
            retries: SingleWriterCounter::new(),
            remote_invalidations: SingleWriterCounter::new(),
            local_invalidations: SingleWriterCounter::new(),
            doorbells: SingleWriterCounter::new(),
            completions: SingleWriterCounter::new(),
            polls: SingleWriterCounter::new(),
            reads: [const { SingleWriterCounter::new() }; BUCKETS],
            writes: [const { SingleWriterCounter::new() }; BUCKETS],
            timed: RelaxedBool::new(timed),
            qid,
        })
    }

    /// Returns the number of the queue.
    pub fn qid(&self) -> u16 {
        self.qid
    }

    /// Counts latencies of commands that are posted from now on, or stops counting them.
    pub fn set_timed(&self, timed: bool) {
        self.timed.set(timed);
    }

    /// Counts a completion of a work request. As all methods that count: for handlers of the
    /// queue's completions, and after the drain for its owner.
    #[inline]
    pub(crate) fn completed(&self, completion: &Completion<'_>) {
        self.completions.add(1);
        if completion.begins_poll() {
            self.polls.add(1);
        }
    }

    /// Counts a request that is about to be sent again.
    pub fn retried(&self) {
        self.retries.add(1);
    }

    /// Counts a key that this host invalidated.
    #[inline]
    pub(crate) fn invalidated(&self) {
        self.local_invalidations.add(1);
        self.doorbells.add(1);
    }

    /// Counts a command that the target answered.
    #[inline]
    pub(crate) fn answered(&self, command: AnsweredCommand<'_>) {
        let stats = command.stats;
        if let Some(began) = stats.began {
            self.took(stats.kind, began);
        }
        self.doorbells.add(command.position.doorbells());
        self.remote_invalidations
            .add(command.remotely_invalidated.into());
        if let Some(modes) = self.commands.get(stats.kind as usize) {
            count_mode(modes, stats.data_mode);
        }
        match self.bytes.get(stats.kind as usize) {
            Some(bytes) if command.status.is_success() => bytes.add(stats.bytes.into()),
            _ => self.errors.add(1),
        }
    }

    /// Counts a command that was posted and ends with the queue.
    pub(crate) fn lost(&self, stats: &CommandStats, position: PostPosition) {
        self.doorbells.add(position.doorbells());
        count_mode(&self.lost, stats.data_mode);
    }

    /// Counts the latency of a command that ends.
    #[cold]
    fn took(&self, kind: IoOp, began: Instant<Monotonic>) {
        let latencies = match kind {
            IoOp::Read => &self.reads,
            IoOp::Write => &self.writes,
            IoOp::Flush | IoOp::Other => return,
        };
        let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(0);
        if let Some(counter) = latencies.get(latency::bucket(ns)) {
            counter.add(1);
        }
    }

    /// Commands that ended, of all kinds.
    fn all(&self) -> impl Iterator<Item = &DataModeCounters> {
        Iterator::chain(self.commands.iter(), [&self.lost])
    }

    /// Commands that ended and whose data took this way.
    fn by(&self, data_mode: DataMode) -> u64 {
        sum(self.all().filter_map(|modes| modes.get(data_mode as usize)))
    }

    /// Returns the commands that the target answered.
    pub(crate) fn ended(&self) -> u64 {
        sum(self.commands.iter().flatten())
    }

    /// Commands of a kind that the target answered.
    fn of_kind(&self, kind: IoOp) -> u64 {
        let modes = self.commands.get(kind as usize);
        modes.map_or(0, |modes| sum(modes.iter()))
    }

    /// Bytes of commands of a kind that succeeded.
    fn bytes(&self, kind: IoOp) -> u64 {
        self.bytes
            .get(kind as usize)
            .map_or(0, SingleWriterCounter::get)
    }

    /// Send work requests: a send of each command, registrations, and invalidations.
    fn work_requests(&self) -> u64 {
        sum(self.all().flatten())
            .wrapping_add(self.by(DataMode::ByKey))
            .wrapping_add(self.local_invalidations.get())
    }
}

#[inline]
fn count_mode(modes: &DataModeCounters, data_mode: DataMode) {
    if let Some(counter) = modes.get(data_mode as usize) {
        counter.add(1);
    }
}

fn sum<'a>(counters: impl Iterator<Item = &'a SingleWriterCounter>) -> u64 {
    counters
        .map(SingleWriterCounter::get)
        .fold(0, u64::wrapping_add)
}

impl ReadStats for QueueStats {
    fn count(&self, count: Count) -> u64 {
        match count {
            Count::Reads => self.of_kind(IoOp::Read),
            Count::Writes => self.of_kind(IoOp::Write),
            Count::Flushes => self.of_kind(IoOp::Flush),
            Count::Others => self.of_kind(IoOp::Other),
            Count::ReadBytes => self.bytes(IoOp::Read),
            Count::WrittenBytes => self.bytes(IoOp::Write),
            Count::Errors => self.errors.get(),
            Count::Retries => self.retries.get(),
            Count::InCapsule => self.by(DataMode::InCapsule),
            Count::Registrations => self.by(DataMode::ByKey),
            Count::RemoteInvalidations => self.remote_invalidations.get(),
            Count::LocalInvalidations => self.local_invalidations.get(),
            Count::Doorbells => self.doorbells.get(),
            Count::WorkRequests => self.work_requests(),
            Count::Completions => self.completions.get(),
            Count::Polls => self.polls.get(),
        }
    }

    fn latencies(&self, command: TimedCommand, bucket: usize) -> u64 {
        let latencies = match command {
            TimedCommand::Read => &self.reads,
            TimedCommand::Write => &self.writes,
        };
        latencies.get(bucket).map_or(0, SingleWriterCounter::get)
    }

    #[inline]
    fn counts_latencies(&self) -> bool {
        self.timed.get()
    }
}
