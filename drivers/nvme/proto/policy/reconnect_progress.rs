// SPDX-License-Identifier: GPL-2.0

//! Progress of reconnecting, from the loss of a connection to the next one.

use crate::policy::reconnect_policy::{
    FlapHistory, ReconnectAction, ReconnectLimits, ReconnectState,
};

/// Progress of reconnecting. A driver quiesces I/O before it makes one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReconnectProgress {
    history: FlapHistory,
    attempts: u32,
    io: HeldIo,
}

/// What requests do while there is no connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeldIo {
    /// They wait: the queues are quiesced.
    Quiesced,
    /// They fail: the queues are not.
    Failing,
}

/// A moment between two attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PauseState {
    /// Milliseconds since the connection was lost.
    pub since_loss_ms: u32,
    /// Milliseconds since the pause began.
    pub since_attempt_ms: u32,
    /// A random number, the same for the whole pause.
    pub random: u32,
}

/// What a driver does between two attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReconnectStep {
    /// What to make of I/O first, if that changes.
    pub io: Option<HeldIo>,
    /// What to do then.
    pub action: ReconnectAction,
}

impl ReconnectProgress {
    /// The progress after a loss. The time and the attempts of a connection that was lost soon
    /// count on.
    #[must_use]
    pub const fn new(history: FlapHistory) -> Self {
        Self {
            history,
            attempts: history.attempts,
            io: HeldIo::Quiesced,
        }
    }

    /// Attempts so far, one in progress included.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Milliseconds without a connection that limits count from.
    #[must_use]
    pub const fn outage_ms(&self, since_loss_ms: u32) -> u32 {
        self.history.outage_ms.saturating_add(since_loss_ms)
    }

    /// The next step in a pause. `limits` may change at any time.
    #[must_use]
    pub fn step(&mut self, limits: &ReconnectLimits, pause: PauseState) -> ReconnectStep {
        let since_loss_ms = self.outage_ms(pause.since_loss_ms);
        let io = if limits.hold_io(since_loss_ms) {
            HeldIo::Quiesced
        } else {
            HeldIo::Failing
        };
        let changed = io != self.io;
        self.io = io;
        ReconnectStep {
            io: changed.then_some(io),
            action: limits.action(ReconnectState {
                since_loss_ms,
                since_attempt_ms: pause.since_attempt_ms,
                attempts: self.attempts,
                random: pause.random,
            }),
        }
    }

    /// Begins an attempt.
    pub fn begin_attempt(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
    }

    /// What to keep with the new connection: see [`FlapHistory::record_loss`].
    #[must_use]
    pub fn connected(&self, since_loss_ms: u32) -> FlapHistory {
        let outage_ms = self.outage_ms(since_loss_ms);
        self.history.record_reconnect(self.attempts, outage_ms)
    }
}

#[cfg(test)]
mod tests;
