// SPDX-License-Identifier: GPL-2.0

//! Time limits that end whatever the threads of the controllers wait for.
//!
//! A thread of the module acts on them, for all controllers: it releases held writes, and notices that a
//! target does not answer commands while its controller is removed. It waits for nothing but these times.

use kernel::{
    new_mutex,
    prelude::*,
    sync::Mutex,
    time::{
        Instant,
        Monotonic, //
    },
};
use nvme_proto::policy::unanswered_commands::UnansweredCommands;
use nvme_rdma_transport::conn_error::ConnError;
use rrdma::sync::{
    Deadline,
    Msecs,
    RelaxedBool,
    TimedCompletion, //
};

/// Wakes the thread that acts on the time limits.
#[pin_data]
pub(crate) struct DeadlineTimer {
    #[pin]
    changed: TimedCompletion,
    stopped: RelaxedBool,
}

impl DeadlineTimer {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            changed <- TimedCompletion::new(),
            stopped: RelaxedBool::new(false),
        })
    }

    /// Makes the thread look at the time limits again, because one is earlier now. Any context.
    pub(crate) fn rearm(&self) {
        self.changed.complete();
    }

    /// Ends the thread. Any context.
    pub(crate) fn stop(&self) {
        self.stopped.set(true);
        self.changed.complete();
    }

    /// Calls `act` until [`stop`](Self::stop): when it is [rearmed](Self::rearm), and at the time that the
    /// last call returned. Sleeps.
    pub(crate) fn run(&self, act: impl Fn() -> Deadline) {
        while !self.stopped.get() {
            let next = act();
            // Woken or timed out: `act` looks at all time limits again.
            let _ = self.changed.wait_timeout(next.left());
        }
    }
}

/// The commands in flight while a controller is removed. Its lock is a leaf.
#[pin_data]
pub(super) struct RemovalWatch {
    /// `None` until removal is requested.
    #[pin]
    commands: Mutex<Option<WatchedCommands>>,
}

struct WatchedCommands {
    began: Instant<Monotonic>,
    unanswered: UnansweredCommands,
}

impl RemovalWatch {
    /// Interval between two calls of [`overdue`](Self::overdue).
    pub(super) const INTERVAL: Msecs = Msecs::new(UnansweredCommands::INTERVAL_MS);

    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            commands <- new_mutex!(None, "rnvmf::RemovalWatch::commands"),
        })
    }

    /// Counts the unanswered commands by `count`, which is given their age. Returns an error if the target does
    /// not answer them. May sleep.
    pub(super) fn overdue(&self, count: impl FnOnce(Msecs) -> u32) -> Option<ConnError> {
        let mut commands = self.commands.lock();
        let commands = commands.get_or_insert_with(|| WatchedCommands {
            began: Instant::now(),
            unanswered: UnansweredCommands::new(),
        });
        let now_ms = Msecs::from(commands.began.elapsed()).get();
        let unanswered = &mut commands.unanswered;
        let count = count(Msecs::new(unanswered.age_ms(now_ms)));
        let overdue = unanswered.is_overdue(now_ms, count);
        overdue.then_some(ConnError::Unanswered {
            count,
            ms: UnansweredCommands::LIMIT_MS,
        })
    }
}
