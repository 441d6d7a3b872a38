// SPDX-License-Identifier: GPL-2.0

//! What becomes of a controller and its I/O after a loss, as time goes by.

use crate::policy::backoff::Backoff;

/// What a user allows after a loss. Times are in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReconnectLimits {
    /// The longest pause between attempts to connect again.
    pub max_reconnect_delay_ms: u32,
    /// How long attempts go on; `None` for no end.
    pub ctrl_loss_tmo_ms: Option<u32>,
    /// How long I/O is held back; `None` for as long as attempts go on.
    pub fast_io_fail_tmo_ms: Option<u32>,
}

/// A moment between two attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReconnectState {
    /// Milliseconds since the loss.
    pub since_loss_ms: u32,
    /// Milliseconds since the pause began.
    pub since_attempt_ms: u32,
    /// How many attempts there were.
    pub attempts: u32,
    /// Any number, the same for the whole pause.
    pub random: u32,
}

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReconnectAction {
    /// No more attempts.
    GiveUp,
    /// The next attempt, which must be over within this time.
    Attempt {
        /// Milliseconds; `None` if nothing limits it.
        within_ms: Option<u32>,
    },
    /// Nothing, for a while.
    Wait {
        /// Milliseconds until something is to be done.
        ms: u32,
        /// Milliseconds until the next attempt.
        attempt_ms: u32,
    },
}

/// What counts of earlier losses when a connection is lost.
///
/// A target may hang up whenever it gets a certain command, which comes again with each
/// connection. So one that does not hold does not end what the loss before it began: pauses go on
/// to grow, and there is an end to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlapHistory {
    /// How many attempts there were.
    pub attempts: u32,
    /// Milliseconds without a connection.
    pub outage_ms: u32,
    /// The loss is that of a connection that did not hold.
    flapping: bool,
}

impl FlapHistory {
    /// A connection that stands for so long holds.
    const STABLE_MS: u32 = 10_000;

    /// When attempts to connect again have succeeded: so many, after so many milliseconds, with
    /// what counted already.
    #[must_use]
    pub fn record_reconnect(self, attempts: u32, outage_ms: u32) -> Self {
        Self {
            attempts,
            outage_ms,
            ..self
        }
    }

    /// When the connection that was made then is lost, after it stood for so long.
    ///
    /// The time counts from the first connection that did not hold, and not from the loss before
    /// it: who comes back at the last moment, and stumbles once, has all the time again.
    #[must_use]
    pub fn record_loss(self, uptime_ms: u32) -> Self {
        if uptime_ms >= Self::STABLE_MS {
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
    /// Whether I/O is held back so long after a loss.
    #[must_use]
    pub fn hold_io(&self, since_loss_ms: u32) -> bool {
        self.fast_io_fail_tmo_ms
            .is_none_or(|limit| since_loss_ms < limit)
    }

    /// What is to be done at a moment between two attempts.
    #[must_use]
    pub fn action(&self, now: ReconnectState) -> ReconnectAction {
        if self
            .ctrl_loss_tmo_ms
            .is_some_and(|limit| now.since_loss_ms >= limit)
        {
            return ReconnectAction::GiveUp;
        }
        let pause = Backoff::new(self.max_reconnect_delay_ms).pause_ms(now.attempts, now.random);
        let change = self.change_ms(now.since_loss_ms);
        match pause.saturating_sub(now.since_attempt_ms) {
            0 => ReconnectAction::Attempt { within_ms: change },
            attempt_ms => ReconnectAction::Wait {
                ms: change.map_or(attempt_ms, |change| change.min(attempt_ms)),
                attempt_ms,
            },
        }
    }

    /// How long it is until a limit that has not passed does.
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
