// SPDX-License-Identifier: GPL-2.0

//! Counters of one queue.
//!
//! Each queue has counters of its own, on its own cache lines, that only handlers of its
//! completions change. These handlers never run concurrently, so no counter needs a locked
//! instruction ([`SingleWriterCounter`]). They run on the CPU of the completion vector, or on the
//! CPU that polls.
//!
//! `CommandStats` has the numbers of one command. It is in the command's slot, which one context
//! accesses at a time, and is added when the command ends. After the drain, the ULP's thread adds
//! the numbers of commands without a response: handlers of this queue no longer run, and those of
//! the next queue with this number do not run yet.
//!
//! Counters belong to a queue number, not to a connection. The ULP passes the same [`QueueStats`]
//! to the next queue of that number, and counting continues. A reader may see a command that is
//! partly added; while no command is in flight, the counters agree.
//!
//! Latencies of reads and writes are counted only if the ULP enables it, because two reads of the
//! clock cost more than all other counters together. Submitters read that flag from a cache line
//! that rarely changes.

use kernel::{
    prelude::*,
    sync::Arc,
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

/// The counters of a queue, as its handlers use them. With `()`, nothing is counted.
///
/// Only handlers of the queue's completions may count and, after the drain, the queue's owner.
pub trait Counters: Send + Sync + 'static {
    /// Numbers of one command, until it ends.
    type Command: Default + Send;

    /// Returns the numbers of a command of `bytes` that is about to be posted. Any context.
    fn begin(&self, kind: IoOp, bytes: u32) -> Self::Command;

    /// Sets how the data of a command is transferred. Any context.
    fn set_data_mode(command: &mut Self::Command, data_mode: DataMode);

    /// Counts a completion of a work request.
    fn completed(&self, completion: &Completion<'_>);

    /// Counts a key that this host invalidated.
    fn invalidated(&self);

    /// Counts a command that the target answered.
    fn answered(&self, command: &Self::Command, response: AnsweredCommand);

    /// Counts a command that was posted and ends with the queue.
    fn lost(&self, command: &Self::Command, position: PostPosition);

    /// Returns the number of commands with a response. Any context.
    fn ended(&self) -> u64;
}

impl Counters for () {
    type Command = ();

    #[inline(always)]
    fn begin(&self, _kind: IoOp, _bytes: u32) {}

    #[inline(always)]
    fn set_data_mode(_command: &mut (), _data_mode: DataMode) {}

    #[inline(always)]
    fn completed(&self, _completion: &Completion<'_>) {}

    fn invalidated(&self) {}

    #[inline(always)]
    fn answered(&self, _command: &(), _response: AnsweredCommand) {}

    fn lost(&self, _command: &(), _position: PostPosition) {}

    fn ended(&self) -> u64 {
        0
    }
}

/// A counter that user space can read.
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
    /// Commands that the target completed with an error.
    Errors,
    /// Requests that were retried.
    Retries,
    /// Commands with in-capsule data.
    InCapsule,
    /// Memory registrations.
    Registrations,
    /// Keys that the target invalidated.
    RemoteInvalidations,
    /// Keys that this host invalidated.
    LocalInvalidations,
    /// Calls of `ib_post_send()`.
    Doorbells,
    /// Send work requests.
    WorkRequests,
    /// Completions of work requests.
    Completions,
    /// Polls of the completion queue that returned completions.
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

/// Read access to the counters of a queue, or to the sums of several queues.
pub trait ReadStats {
    /// Returns a counter.
    fn count(&self, count: Count) -> u64;

    /// Returns the number of commands in a [bucket](latency::bucket) of latencies.
    fn latencies(&self, command: TimedCommand, bucket: usize) -> u64;

    /// Returns whether latencies are counted.
    fn counts_latencies(&self) -> bool;
}

/// Number of commands by [`DataMode`].
type DataModeCounters = [SingleWriterCounter; DataMode::COUNT];

/// Number of commands by bucket of latency.
type Histogram = [SingleWriterCounter; BUCKETS];

/// The counters of one queue.
#[repr(C, align(64))]
pub struct QueueStats {
    /// Commands that ended, by kind. Sums have no counters of their own.
    commands: [DataModeCounters; IoOp::COUNT],
    /// Commands that were posted and ended with the queue, without a response.
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
    /// Whether latencies are counted. On another cache line than what changes with each command.
    timed: RelaxedBool,
    qid: u16,
}

/// Direction and means of a command's data transfer.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum DataMode {
    /// The command has no data.
    #[default]
    Nothing,
    /// The data follows the command in its capsule.
    InCapsule,
    /// The target accesses the data with a key, by RDMA read or write.
    ByKey,
}

impl DataMode {
    const COUNT: usize = Self::ByKey as usize + 1;
}

/// Position of a command's send among those that one call posts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PostPosition {
    /// The first command of the call; it counts as the doorbell.
    First,
    /// A command after the first.
    Follows,
}

impl PostPosition {
    #[inline]
    fn doorbells(self) -> u64 {
        u64::from(self == Self::First)
    }
}

/// Numbers of one command, until it ends.
#[derive(Clone, Copy, Default)]
pub struct CommandStats {
    kind: IoOp,
    /// Set when the data is mapped.
    data_mode: DataMode,
    bytes: u32,
    /// Time at which the command was posted, if latencies are counted.
    began: Option<Instant<Monotonic>>,
}

/// A command with a response.
pub struct AnsweredCommand {
    /// Its position in the post.
    pub position: PostPosition,
    /// The status of the response.
    pub status: Status,
    /// The target invalidated the command's key.
    pub remotely_invalidated: bool,
}

const fn data_mode_counters() -> DataModeCounters {
    [const { SingleWriterCounter::new() }; DataMode::COUNT]
}

impl QueueStats {
    /// Returns the counters of queue `qid`, all 0. `timed` says whether latencies are counted.
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

    /// Enables or disables counting of latencies, for commands that are posted from now on.
    pub fn set_timed(&self, timed: bool) {
        self.timed.set(timed);
    }

    /// Counts a request that is about to be retried. As [`Counters`] requires.
    pub fn retried(&self) {
        self.retries.add(1);
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

    /// Iterates over the commands that ended, with a response and without one.
    fn all(&self) -> impl Iterator<Item = &DataModeCounters> {
        Iterator::chain(self.commands.iter(), [&self.lost])
    }

    /// Returns the number of commands that ended, for a data mode.
    fn by(&self, data_mode: DataMode) -> u64 {
        sum(self.all().filter_map(|modes| modes.get(data_mode as usize)))
    }

    /// Returns the number of commands of a kind with a response.
    fn of_kind(&self, kind: IoOp) -> u64 {
        let modes = self.commands.get(kind as usize);
        modes.map_or(0, |modes| sum(modes.iter()))
    }

    /// Returns the bytes of commands of a kind that succeeded.
    fn bytes(&self, kind: IoOp) -> u64 {
        self.bytes
            .get(kind as usize)
            .map_or(0, SingleWriterCounter::get)
    }

    /// Returns the number of send work requests: sends, registrations and invalidations.
    fn work_requests(&self) -> u64 {
        sum(self.all().flatten())
            .wrapping_add(self.by(DataMode::ByKey))
            .wrapping_add(self.local_invalidations.get())
    }
}

impl Counters for Arc<QueueStats> {
    type Command = CommandStats;

    #[inline]
    fn begin(&self, kind: IoOp, bytes: u32) -> CommandStats {
        CommandStats {
            began: self.counts_latencies().then(Instant::now),
            kind,
            data_mode: DataMode::Nothing,
            bytes,
        }
    }

    #[inline]
    fn set_data_mode(command: &mut CommandStats, data_mode: DataMode) {
        command.data_mode = data_mode;
    }

    #[inline]
    fn completed(&self, completion: &Completion<'_>) {
        self.completions.add(1);
        if completion.begins_poll() {
            self.polls.add(1);
        }
    }

    #[inline]
    fn invalidated(&self) {
        self.local_invalidations.add(1);
        self.doorbells.add(1);
    }

    #[inline]
    fn answered(&self, command: &CommandStats, response: AnsweredCommand) {
        if let Some(began) = command.began {
            self.took(command.kind, began);
        }
        self.doorbells.add(response.position.doorbells());
        self.remote_invalidations
            .add(response.remotely_invalidated.into());
        if let Some(modes) = self.commands.get(command.kind as usize) {
            count_mode(modes, command.data_mode);
        }
        match self.bytes.get(command.kind as usize) {
            Some(bytes) if response.status.is_success() => bytes.add(command.bytes.into()),
            _ => self.errors.add(1),
        }
    }

    fn lost(&self, command: &CommandStats, position: PostPosition) {
        self.doorbells.add(position.doorbells());
        count_mode(&self.lost, command.data_mode);
    }

    fn ended(&self) -> u64 {
        sum(self.commands.iter().flatten())
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
