// SPDX-License-Identifier: GPL-2.0

//! What the queues of a controller have done.
//!
//! Nothing is shared for counting: each queue has numbers of its own, on cache lines of their
//! own, that only handlers of its completions change. These run one after the other, on the
//! processor of the queue's completion vector, or of whoever polls a queue that is polled, and
//! so need no locked instruction ([`SingleWriterCounter`]). What a command takes on its way there is noted
//! in its slot ([`CommandStats`]), which one context has at a time, and added when the command is
//! over. When the queue is drained its controller's thread adds what is left: no handler runs
//! any more, and those of the next queue of that number do not run yet.
//!
//! The numbers belong to the controller and to the number of the queue, not to a connection, so
//! they go on where they were after connecting again. A reader may see those of a command half
//! added; when no command is under way they agree.
//!
//! How long reads and writes take is counted only while that is asked for, as a look at the clock
//! when a command is posted and another when it is over cost more than all other numbers together.
//! Whether it is asked for, submitters read from a cache line that hardly ever changes.

use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        Instant,
        Monotonic, //
    },
};
use nvme_proto::{
    format::{cqe, sqe::IoOp},
    policy::latency::{
        self,
        BUCKETS, //
    },
};
use rrdma::{
    rdma::cq::Completion,
    sync::{
        RelaxedBool,
        SingleWriterCounter, //
    },
};

/// What is counted.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    Reads,
    Writes,
    Flushes,
    Others,
    ReadBytes,
    WrittenBytes,
    Errors,
    Retries,
    InCapsule,
    Registrations,
    RemoteInvalidations,
    LocalInvalidations,
    Doorbells,
    WorkRequests,
    Completions,
    Polls,
}

/// Commands, by the way of their data.
type DataModeCounters = [SingleWriterCounter; DataMode::COUNT];

/// Commands whose time is taken.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    Read,
    Write,
}

/// How many commands took how long.
type Histogram = [SingleWriterCounter; BUCKETS];

/// What is shown of what was counted.
pub(crate) trait Numbers {
    /// One of the numbers.
    fn count(&self, count: Count) -> u64;

    /// Commands in a [bucket](latency::bucket) of times.
    fn times(&self, way: Way, bucket: usize) -> u64;

    /// Whether times are taken.
    fn is_timed(&self) -> bool;
}

/// What one queue has done.
#[repr(C, align(64))]
pub(crate) struct QueueStats {
    /// Those that are over, by their kind. What can be had by adding is not counted by itself.
    commands: [DataModeCounters; IoOp::COUNT],
    /// Those that were posted, and had no end but that of the queue.
    lost: DataModeCounters,
    /// Of commands that succeeded, by their kind.
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
    /// Times are taken. On another cache line than what changes with each command.
    timed: RelaxedBool,
    qid: u16,
}

/// How a command's data travels.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DataMode {
    #[default]
    Nothing,
    InCapsule,
    ByKey,
}

impl DataMode {
    const COUNT: usize = Self::ByKey as usize + 1;
}

/// What one command takes, until it is over.
#[derive(Clone, Copy, Default)]
pub(crate) struct CommandStats {
    kind: IoOp,
    /// Known when the data is mapped.
    pub(crate) data_mode: DataMode,
    bytes: u32,
    /// When it was posted, if its time is taken.
    began: Option<Instant<Monotonic>>,
}

impl CommandStats {
    /// A command that is about to be posted.
    #[inline]
    pub(crate) fn new(stats: &QueueStats, kind: IoOp, bytes: u32) -> Self {
        Self {
            began: stats.is_timed().then(Instant::now),
            kind,
            data_mode: DataMode::Nothing,
            bytes,
        }
    }
}

const fn ways() -> DataModeCounters {
    [const { SingleWriterCounter::new() }; DataMode::COUNT]
}

impl QueueStats {
    fn new(qid: u16, timed: bool) -> impl Init<Self> {
        init!(Self {
            commands: [const { ways() }; IoOp::COUNT],
            lost: ways(),
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

    /// The number of the queue.
    pub(crate) fn qid(&self) -> u16 {
        self.qid
    }

    /// A work request has completed. Handlers of the queue's completions only, as all that
    /// counts, and whoever comes after the last of them.
    #[inline]
    pub(crate) fn completed(&self, completion: &Completion<'_>) {
        self.completions.add(1);
        if completion.begins_poll() {
            self.polls.add(1);
        }
    }

    /// A command is about to be sent again.
    pub(crate) fn retried(&self) {
        self.retries.add(1);
    }

    /// We ended the target's access to the data of a command ourselves.
    #[inline]
    pub(crate) fn invalidated(&self) {
        self.local_invalidations.add(1);
        self.doorbells.add(1);
    }

    /// A command is over that did, or did not, begin the call which posted it, and the target
    /// ended its access to the data, or did not.
    #[inline]
    pub(crate) fn answered(
        &self,
        tally: &CommandStats,
        begins_call: bool,
        completion: cqe::Completion,
        by_target: bool,
    ) {
        if let Some(began) = tally.began {
            self.took(tally.kind, began);
        }
        self.doorbells.add(begins_call.into());
        self.remote_invalidations.add(by_target.into());
        if let Some(ways) = self.commands.get(tally.kind as usize) {
            count_way(ways, tally.data_mode);
        }
        match self.bytes.get(tally.kind as usize) {
            Some(bytes) if completion.status().is_success() => bytes.add(tally.bytes.into()),
            _ => self.errors.add(1),
        }
    }

    /// A command was posted, and ends with the queue.
    pub(crate) fn lost(&self, tally: &CommandStats, begins_call: bool) {
        self.doorbells.add(begins_call.into());
        count_way(&self.lost, tally.data_mode);
    }

    /// A command is over that was timed.
    #[cold]
    fn took(&self, kind: IoOp, began: Instant<Monotonic>) {
        let times = match kind {
            IoOp::Read => &self.reads,
            IoOp::Write => &self.writes,
            IoOp::Flush | IoOp::Other => return,
        };
        let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(0);
        if let Some(counter) = times.get(latency::bucket(ns)) {
            counter.add(1);
        }
    }

    /// Commands that are not under way any more, of all kinds.
    fn all(&self) -> impl Iterator<Item = &DataModeCounters> {
        Iterator::chain(self.commands.iter(), [&self.lost])
    }

    /// Those of them whose data took this way.
    fn by(&self, data_mode: DataMode) -> u64 {
        sum(self.all().filter_map(|ways| ways.get(data_mode as usize)))
    }

    /// Commands that the target has answered.
    pub(crate) fn ended(&self) -> u64 {
        sum(self.commands.iter().flatten())
    }

    /// Commands of a kind that are over.
    fn of_kind(&self, kind: IoOp) -> u64 {
        let ways = self.commands.get(kind as usize);
        ways.map_or(0, |ways| sum(ways.iter()))
    }

    /// The bytes of commands of a kind.
    fn bytes(&self, kind: IoOp) -> u64 {
        self.bytes
            .get(kind as usize)
            .map_or(0, SingleWriterCounter::get)
    }

    /// A send of each command, and a registration of each that has one; and invalidations.
    fn work_requests(&self) -> u64 {
        sum(self.all().flatten())
            .wrapping_add(self.by(DataMode::ByKey))
            .wrapping_add(self.local_invalidations.get())
    }
}

#[inline]
fn count_way(ways: &DataModeCounters, data_mode: DataMode) {
    if let Some(counter) = ways.get(data_mode as usize) {
        counter.add(1);
    }
}

fn sum<'a>(counters: impl Iterator<Item = &'a SingleWriterCounter>) -> u64 {
    counters
        .map(SingleWriterCounter::get)
        .fold(0, u64::wrapping_add)
}

impl Numbers for QueueStats {
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

    fn times(&self, way: Way, bucket: usize) -> u64 {
        let times = match way {
            Way::Read => &self.reads,
            Way::Write => &self.writes,
        };
        times.get(bucket).map_or(0, SingleWriterCounter::get)
    }

    #[inline]
    fn is_timed(&self) -> bool {
        self.timed.get()
    }
}

/// What the queues of a controller have done, those that it has no more included.
pub(crate) struct CtrlStats {
    queues: KVec<Arc<QueueStats>>,
    timed: bool,
}

impl CtrlStats {
    pub(crate) const fn new() -> Self {
        Self {
            queues: KVec::new(),
            timed: false,
        }
    }

    /// The numbers of a queue, which begin at 0 if it is the first of its number. May sleep.
    pub(crate) fn of(&mut self, qid: u16) -> Result<Arc<QueueStats>> {
        if let Some(stats) = self.queues.iter().find(|stats| stats.qid == qid) {
            return Ok(stats.clone());
        }
        let stats = Arc::init(QueueStats::new(qid, self.timed), GFP_KERNEL)?;
        self.queues.push(stats.clone(), GFP_KERNEL)?;
        Ok(stats)
    }

    /// The queues that there are, or were, in the order of their numbers.
    pub(crate) fn queues(&self) -> &[Arc<QueueStats>] {
        &self.queues
    }

    /// Takes the time of commands that are posted from now on, or does not any more.
    pub(crate) fn set_timed(&mut self, timed: bool) {
        self.timed = timed;
        for queue in &self.queues {
            queue.timed.set(timed);
        }
    }

    fn sum(&self, number: impl Fn(&QueueStats) -> u64) -> u64 {
        let numbers = self.queues.iter().map(|stats| number(stats));
        numbers.fold(0, u64::wrapping_add)
    }
}

/// All queues together.
impl Numbers for CtrlStats {
    fn count(&self, count: Count) -> u64 {
        self.sum(|stats| stats.count(count))
    }

    fn times(&self, way: Way, bucket: usize) -> u64 {
        self.sum(|stats| stats.times(way, bucket))
    }

    fn is_timed(&self) -> bool {
        self.timed
    }
}
