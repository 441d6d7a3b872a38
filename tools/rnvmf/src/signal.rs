// SPDX-License-Identifier: GPL-2.0

//! The signal that asked the program to stop.

use std::sync::atomic::{AtomicI32, Ordering};

/// The last of SIGINT and SIGTERM, for the whole program. A verb need not have waited for it.
pub(crate) static STOP: StopSignal = StopSignal::new();

/// A signal number, or none.
pub(crate) struct StopSignal(AtomicI32);

impl StopSignal {
    /// No signal came yet.
    pub(crate) const fn new() -> Self {
        Self(AtomicI32::new(0))
    }

    /// Records a signal; the last one counts.
    pub(crate) fn record(&self, signal: i32) {
        self.0.store(signal, Ordering::Relaxed);
    }

    /// Returns the last signal.
    pub(crate) fn get(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
    }
}
