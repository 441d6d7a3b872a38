// SPDX-License-Identifier: GPL-2.0

//! Progress of reconnecting, from a connection loss to the next connection.

use crate::policy::reconnect_policy::{FlapHistory, PauseState, ReconnectAction, ReconnectLimits};

/// Progress of reconnecting. A driver holds I/O before it creates one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReconnectProgress {
    history: FlapHistory,
    attempts: u32,
    io: IoState,
}

/// State of requests without a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoState {
    /// Requests are held for the next connection.
    Held,
    /// Requests fail.
    Failing,
}

/// Action of a driver between two attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReconnectStep {
    /// New state of I/O, to be applied first; `None` if it stays the same.
    pub io: Option<IoState>,
    /// What to do next.
    pub action: ReconnectAction,
}

impl ReconnectProgress {
    /// Returns the progress after a connection loss. It continues `history`, which has the time and
    /// attempts of an unstable connection.
    pub const fn new(history: FlapHistory) -> Self {
        Self {
            history,
            attempts: history.attempts,
            io: IoState::Held,
        }
    }

    /// Returns the number of attempts, including one in progress.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns the time without a connection to which limits apply, in milliseconds.
    pub const fn outage_ms(&self, since_loss_ms: u32) -> u32 {
        self.history.outage_ms.saturating_add(since_loss_ms)
    }

    /// Returns the next step in a pause. `limits` may change between two calls.
    #[must_use]
    pub fn step(&mut self, limits: &ReconnectLimits, pause: PauseState) -> ReconnectStep {
        let since_loss_ms = self.outage_ms(pause.since_loss_ms);
        let io = if limits.hold_io(since_loss_ms) {
            IoState::Held
        } else {
            IoState::Failing
        };
        let changed = io != self.io;
        self.io = io;
        ReconnectStep {
            io: changed.then_some(io),
            action: limits.action(
                self.attempts,
                PauseState {
                    since_loss_ms,
                    ..pause
                },
            ),
        }
    }

    /// Begins an attempt.
    pub fn begin_attempt(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
    }

    /// Returns the history to keep with the new connection: see [`FlapHistory::record_loss`].
    pub fn connected(&self, since_loss_ms: u32) -> FlapHistory {
        let outage_ms = self.outage_ms(since_loss_ms);
        self.history.record_reconnect(self.attempts, outage_ms)
    }
}

#[cfg(test)]
mod tests;
