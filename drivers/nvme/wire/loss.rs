// SPDX-License-Identifier: GPL-2.0

//! What becomes of a controller and its I/O after a loss, as time goes by.

use crate::backoff::Backoff;

/// What a user allows after a loss. Times are in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The longest pause between attempts to connect again.
    pub longest_pause_ms: u32,
    /// How long attempts go on; `None` for no end.
    pub give_up_ms: Option<u32>,
    /// How long I/O is held back; `None` for as long as attempts go on.
    pub fail_io_ms: Option<u32>,
}

/// A moment between two attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
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
pub enum Action {
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

impl Limits {
    /// Whether I/O is held back so long after a loss.
    #[must_use]
    pub fn hold_io(&self, since_loss_ms: u32) -> bool {
        self.fail_io_ms.is_none_or(|limit| since_loss_ms < limit)
    }

    /// What is to be done at a moment between two attempts.
    #[must_use]
    pub fn action(&self, now: Moment) -> Action {
        if self
            .give_up_ms
            .is_some_and(|limit| now.since_loss_ms >= limit)
        {
            return Action::GiveUp;
        }
        let pause = Backoff::new(self.longest_pause_ms).pause_ms(now.attempts, now.random);
        let change = self.change_ms(now.since_loss_ms);
        match pause.saturating_sub(now.since_attempt_ms) {
            0 => Action::Attempt { within_ms: change },
            attempt_ms => Action::Wait {
                ms: change.map_or(attempt_ms, |change| change.min(attempt_ms)),
                attempt_ms,
            },
        }
    }

    /// How long it is until a limit that has not passed does.
    fn change_ms(&self, since_loss_ms: u32) -> Option<u32> {
        [self.give_up_ms, self.fail_io_ms]
            .into_iter()
            .flatten()
            .filter_map(|limit| limit.checked_sub(since_loss_ms))
            .filter(|left| *left > 0)
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        longest_pause_ms: 1000,
        give_up_ms: Some(60_000),
        fail_io_ms: Some(5000),
    };

    fn at(since_loss_ms: u32, since_attempt_ms: u32) -> Moment {
        Moment {
            since_loss_ms,
            since_attempt_ms,
            attempts: 4,
            random: 0,
        }
    }

    #[test]
    fn a_pause_ends_with_an_attempt() {
        let wait = |ms, attempt_ms| Action::Wait { ms, attempt_ms };
        assert_eq!(LIMITS.action(at(100, 0)), wait(1000, 1000));
        assert_eq!(LIMITS.action(at(100, 999)), wait(1, 1));
        // I/O is to fail before.
        assert_eq!(LIMITS.action(at(4900, 100)), wait(100, 900));
        assert_eq!(LIMITS.action(at(5000, 200)), wait(800, 800));
        assert_eq!(
            LIMITS.action(at(5000, 1000)),
            Action::Attempt {
                within_ms: Some(55_000)
            }
        );
        assert_eq!(
            LIMITS.action(at(4000, u32::MAX)),
            Action::Attempt {
                within_ms: Some(1000)
            }
        );
    }

    #[test]
    fn attempts_end() {
        assert_eq!(LIMITS.action(at(60_000, 1000)), Action::GiveUp);
        assert_eq!(LIMITS.action(at(u32::MAX, 0)), Action::GiveUp);
        let none = Limits {
            give_up_ms: Some(0),
            ..LIMITS
        };
        assert_eq!(none.action(at(0, 0)), Action::GiveUp);
    }

    #[test]
    fn or_go_on_for_ever() {
        let for_ever = Limits {
            give_up_ms: None,
            fail_io_ms: None,
            ..LIMITS
        };
        assert_eq!(
            for_ever.action(at(u32::MAX, 1000)),
            Action::Attempt { within_ms: None }
        );
        assert!(for_ever.hold_io(u32::MAX));
    }

    #[test]
    fn io_is_held_until_its_time_is_over() {
        assert!(LIMITS.hold_io(4999));
        assert!(!LIMITS.hold_io(5000));
        let at_once = Limits {
            fail_io_ms: Some(0),
            ..LIMITS
        };
        assert!(!at_once.hold_io(0));
    }

    #[test]
    fn what_is_set_meanwhile_counts_from_the_loss() {
        let longer = Limits {
            longest_pause_ms: 10_000,
            fail_io_ms: None,
            ..LIMITS
        };
        // The pause that is under way grows, and I/O is held again.
        assert_eq!(
            longer.action(at(6000, 900)),
            Action::Wait {
                ms: 3100,
                attempt_ms: 3100
            }
        );
        assert!(longer.hold_io(6000));
        let over = Limits {
            give_up_ms: Some(6000),
            ..LIMITS
        };
        assert_eq!(over.action(at(6000, 900)), Action::GiveUp);
    }
}
