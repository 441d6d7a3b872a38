// SPDX-License-Identifier: GPL-2.0

//! What the queues of a controller have done.
//!
//! Nothing is shared for counting: each queue has numbers of its own, on cache lines of their
//! own, that only handlers of its completions change. These run one after the other, on the
//! processor of the queue's completion vector, or of whoever polls a queue that is polled, and
//! so need no locked instruction ([`Counter`]). What a command takes on its way there is noted
//! in its slot ([`Tally`]), which one context has at a time, and added when the command is
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
use nvme_wire::{
    cqe,
    latency::{
        self,
        BUCKETS, //
    },
    sqe::Kind, //
};
use rrdma::{
    rdma::cq::Completion,
    sync::{
        Counter,
        Flag, //
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

/// How many numbers there are.
const COUNTS: usize = Count::Polls as usize + 1;

/// Commands whose time is taken.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    Read,
    Write,
}

/// How many commands took how long.
type Histogram = [Counter; BUCKETS];

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
pub(crate) struct Stats {
    counters: [Counter; COUNTS],
    reads: Histogram,
    writes: Histogram,
    /// Times are taken. On another cache line than what changes with each command.
    timed: Flag,
    qid: u16,
}

/// How a command's data travels.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Travel {
    #[default]
    Nothing,
    InCapsule,
    ByKey,
}

/// What one command takes, until it is over.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    kind: Kind,
    travel: Travel,
    bytes: u32,
    /// It is the first that the call which posted it posted.
    begins_call: bool,
    /// When it was posted, if its time is taken.
    began: Option<Instant<Monotonic>>,
}

impl Tally {
    /// A command that is about to be posted.
    #[inline]
    pub(crate) fn new(
        stats: &Stats,
        kind: Kind,
        travel: Travel,
        bytes: u32,
        begins_call: bool,
    ) -> Self {
        Self {
            began: stats.is_timed().then(Instant::now),
            kind,
            travel,
            bytes,
            begins_call,
        }
    }
}

impl Stats {
    fn new(qid: u16, timed: bool) -> impl Init<Self> {
        init!(Self {
            counters: [const { Counter::new() }; COUNTS],
            reads: [const { Counter::new() }; BUCKETS],
            writes: [const { Counter::new() }; BUCKETS],
            timed: Flag::new(timed),
            qid,
        })
    }

    /// The number of the queue.
    pub(crate) fn qid(&self) -> u16 {
        self.qid
    }

    /// Adds to one of the numbers. Handlers of the queue's completions only, and whoever comes
    /// after the last of them.
    #[inline]
    pub(crate) fn add(&self, count: Count, more: u32) {
        if let Some(counter) = self.counters.get(count as usize) {
            counter.add(more.into());
        }
    }

    /// A work request has completed.
    #[inline]
    pub(crate) fn completed(&self, completion: &Completion<'_>) {
        self.add(Count::Completions, 1);
        if completion.begins_poll() {
            self.add(Count::Polls, 1);
        }
    }

    /// We ended the target's access to the data of a command ourselves.
    #[inline]
    pub(crate) fn invalidated(&self) {
        self.add(Count::LocalInvalidations, 1);
        self.add(Count::Doorbells, 1);
        self.add(Count::WorkRequests, 1);
    }

    /// A command is over, and the target ended its access to the data, or did not.
    #[inline]
    pub(crate) fn answered(&self, tally: &Tally, completion: cqe::Completion, by_target: bool) {
        self.posted(tally);
        // In the order of the kinds, so that this is no branch.
        self.add(
            match tally.kind {
                Kind::Read => Count::Reads,
                Kind::Write => Count::Writes,
                Kind::Flush => Count::Flushes,
                Kind::Other => Count::Others,
            },
            1,
        );
        if let Some(began) = tally.began {
            self.took(tally.kind, began);
        }
        match (completion.status.is_success(), tally.kind) {
            (true, Kind::Read) => self.add(Count::ReadBytes, tally.bytes),
            (true, Kind::Write) => self.add(Count::WrittenBytes, tally.bytes),
            (true, _) => {}
            (false, _) => self.add(Count::Errors, 1),
        }
        if by_target {
            self.add(Count::RemoteInvalidations, 1);
        }
    }

    /// A command is over that was timed.
    #[cold]
    fn took(&self, kind: Kind, began: Instant<Monotonic>) {
        let times = match kind {
            Kind::Read => &self.reads,
            Kind::Write => &self.writes,
            Kind::Flush | Kind::Other => return,
        };
        let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(0);
        if let Some(counter) = times.get(latency::bucket(ns)) {
            counter.add(1);
        }
    }

    /// A command was posted, and is not under way any more.
    #[inline]
    pub(crate) fn posted(&self, tally: &Tally) {
        let registrations = u32::from(tally.travel == Travel::ByKey);
        self.add(Count::Doorbells, tally.begins_call.into());
        self.add(Count::WorkRequests, registrations.saturating_add(1));
        self.add(Count::Registrations, registrations);
        self.add(
            Count::InCapsule,
            u32::from(tally.travel == Travel::InCapsule),
        );
    }
}

impl Numbers for Stats {
    fn count(&self, count: Count) -> u64 {
        self.counters.get(count as usize).map_or(0, Counter::get)
    }

    fn times(&self, way: Way, bucket: usize) -> u64 {
        let times = match way {
            Way::Read => &self.reads,
            Way::Write => &self.writes,
        };
        times.get(bucket).map_or(0, Counter::get)
    }

    #[inline]
    fn is_timed(&self) -> bool {
        self.timed.get()
    }
}

/// What the queues of a controller have done, those that it has no more included.
pub(crate) struct Ledger {
    queues: KVec<Arc<Stats>>,
    timed: bool,
}

impl Ledger {
    pub(crate) const fn new() -> Self {
        Self {
            queues: KVec::new(),
            timed: false,
        }
    }

    /// The numbers of a queue, which begin at 0 if it is the first of its number. May sleep.
    pub(crate) fn of(&mut self, qid: u16) -> Result<Arc<Stats>> {
        if let Some(stats) = self.queues.iter().find(|stats| stats.qid == qid) {
            return Ok(stats.clone());
        }
        let stats = Arc::init(Stats::new(qid, self.timed), GFP_KERNEL)?;
        self.queues.push(stats.clone(), GFP_KERNEL)?;
        Ok(stats)
    }

    /// The queues that there are, or were, in the order of their numbers.
    pub(crate) fn queues(&self) -> &[Arc<Stats>] {
        &self.queues
    }

    /// Takes the time of commands that are posted from now on, or does not any more.
    pub(crate) fn set_timed(&mut self, timed: bool) {
        self.timed = timed;
        for queue in &self.queues {
            queue.timed.set(timed);
        }
    }

    fn sum(&self, number: impl Fn(&Stats) -> u64) -> u64 {
        let numbers = self.queues.iter().map(|stats| number(stats));
        numbers.fold(0, u64::wrapping_add)
    }
}

/// All queues together.
impl Numbers for Ledger {
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
