// SPDX-License-Identifier: GPL-2.0

//! Reconnect attempts and held I/O after a connection loss.

use crate::policy::backoff::Backoff;

/// Limits that a user sets for the time after a connection loss, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReconnectLimits {
    /// Longest delay between reconnect attempts.
    pub max_reconnect_delay_ms: u32,
    /// Time after which the host gives up; `None` for never.
    pub ctrl_loss_tmo_ms: Option<u32>,
    /// Time after which held I/O fails; `None` to hold it as long as attempts continue.
    pub fast_io_fail_tmo_ms: Option<u32>,
}

/// Times in a pause between two attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PauseState {
    /// Time since the connection loss, in milliseconds.
    pub since_loss_ms: u32,
    /// Time since the pause began, in milliseconds.
    pub since_attempt_ms: u32,
    /// A random number, the same for the whole pause.
    pub random: u32,
}

/// Action of a driver between two attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReconnectAction {
    /// Give up.
    GiveUp,
    /// Begin the next attempt.
    Attempt {
        /// Time within which the attempt must end, in milliseconds; `None` for no limit.
        within_ms: Option<u32>,
    },
    /// Wait.
    Wait {
        /// Time until the next action, in milliseconds.
        ms: u32,
        /// Time until the next attempt, in milliseconds.
        attempt_ms: u32,
    },
}

/// Attempts and time of earlier outages that count after a connection loss.
///
/// A target may drop a connection whenever it receives a certain command that each connection
/// sends. The loss of an unstable connection therefore continues the outage before it: delays keep
/// growing, and limits apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlapHistory {
    /// Number of attempts.
    pub attempts: u32,
    /// Time without a connection, in milliseconds.
    pub outage_ms: u32,
    /// The lost connection was unstable.
    flapping: bool,
}

impl FlapHistory {
    /// A connection of this age is stable, in milliseconds.
    const STABLE_MS: u32 = 10_000;

    /// Returns whether a connection that was made `uptime_ms` milliseconds ago is stable.
    pub const fn is_stable(uptime_ms: u32) -> bool {
        uptime_ms >= Self::STABLE_MS
    }

    /// Returns the history after a successful reconnect. `attempts` and `outage_ms` include those
    /// of this history.
    #[must_use]
    pub fn record_reconnect(self, attempts: u32, outage_ms: u32) -> Self {
        Self {
            attempts,
            outage_ms,
            ..self
        }
    }

    /// Returns the history after the new connection was lost, `uptime_ms` milliseconds after it was
    /// made.
    ///
    /// Time counts from the loss of the first unstable connection, not from the loss before it. A
    /// target that returns just before the limit and drops one connection has the full time again.
    #[must_use]
    pub fn record_loss(self, uptime_ms: u32) -> Self {
        if Self::is_stable(uptime_ms) {
            return Self::default();
        }
        Self {
            attempts: self.attempts,
            outage_ms: if self.flapping { self.outage_ms } else { 0 },
            flapping: true,
        }
    }
}

impl ReconnectLimits {
    /// Returns how long the first attempt of a reset may take in milliseconds, because I/O is held
    /// meanwhile; `None` for any time. It ends at the first limit, but not before the time-out of a
    /// connect.
    pub fn reset_within_ms(&self, since_reset_ms: u32, connect_timeout_ms: u32) -> Option<u32> {
        // 0 allows no attempt after a loss, which a reset is not.
        let loss_ms = self.ctrl_loss_tmo_ms.filter(|ms| *ms != 0);
        let first_ms = match (self.fast_io_fail_tmo_ms, loss_ms) {
            (Some(fast_ms), Some(loss_ms)) => fast_ms.min(loss_ms),
            (fast_ms, loss_ms) => fast_ms.or(loss_ms)?,
        };
        Some(
            first_ms
                .saturating_sub(since_reset_ms)
                .max(connect_timeout_ms),
        )
    }
    /// Returns whether I/O is held at this time after a loss.
    pub fn hold_io(&self, since_loss_ms: u32) -> bool {
        self.fast_io_fail_tmo_ms
            .is_none_or(|limit| since_loss_ms < limit)
    }

    /// Returns what to do in a pause after a number of attempts.
    pub fn action(&self, attempts: u32, now: PauseState) -> ReconnectAction {
        if self
            .ctrl_loss_tmo_ms
            .is_some_and(|limit| now.since_loss_ms >= limit)
        {
            return ReconnectAction::GiveUp;
        }
        let pause = Backoff::new(self.max_reconnect_delay_ms).pause_ms(attempts, now.random);
        let change = self.change_ms(now.since_loss_ms);
        match pause.saturating_sub(now.since_attempt_ms) {
            0 => ReconnectAction::Attempt { within_ms: change },
            attempt_ms => ReconnectAction::Wait {
                ms: change.map_or(attempt_ms, |change| change.min(attempt_ms)),
                attempt_ms,
            },
        }
    }

    /// Returns the time until the next limit is reached, in milliseconds; `None` if there is none.
    fn change_ms(&self, since_loss_ms: u32) -> Option<u32> {
        [self.ctrl_loss_tmo_ms, self.fast_io_fail_tmo_ms]
            .into_iter()
            .flatten()
            .filter_map(|limit| limit.checked_sub(since_loss_ms))
            .filter(|left| *left > 0)
            .min()
    }
}

#[cfg(test)]
mod tests;
