// SPDX-License-Identifier: GPL-2.0

//! Time limits that end whatever the threads of the controllers wait for.
//!
//! A thread of the module acts on them, for all controllers: it releases held writes. It waits for nothing
//! but these times.

use kernel::prelude::*;
use rrdma::sync::{
    Deadline,
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

    /// Has the thread look for earlier time limits. Any context.
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
            // All is looked at again in either case.
            let _ = self.changed.wait_timeout(next.left());
        }
    }
}
