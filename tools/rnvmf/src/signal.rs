// SPDX-License-Identifier: GPL-2.0

//! The signal that asked the program to stop.

use std::sync::atomic::{AtomicI32, Ordering};

/// The last SIGINT or SIGTERM of this process, also if no verb waits for it.
pub(crate) static STOP: StopSignal = StopSignal::new();

/// The number of the last stop signal.
pub(crate) struct StopSignal(AtomicI32);

impl StopSignal {
    /// Creates the state before any signal.
    pub(crate) const fn new() -> Self {
        Self(AtomicI32::new(0))
    }

    /// Records a signal; replaces the previous one.
    pub(crate) fn record(&self, signal: i32) {
        self.0.store(signal, Ordering::Relaxed);
    }

    /// Returns the last signal.
    pub(crate) fn get(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
    }
}
