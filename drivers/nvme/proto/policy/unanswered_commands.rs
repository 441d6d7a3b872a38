// SPDX-License-Identifier: GPL-2.0

//! Commands that a target does not answer while its controller is removed.

/// Watches the commands in flight while a controller is removed.
///
/// The oldest ones are counted again and again: those that were sent before a mark. The target answers
/// commands as long as their number falls. Once it is zero, the mark moves to the present. So later commands
/// that are answered, such as a long write-back, neither hide a command that is never answered nor end the
/// watch early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnansweredCommands {
    /// Only commands that were sent before this time are counted, in milliseconds since the watch began.
    mark_ms: u32,
    /// When the number last fell, in milliseconds since the watch began.
    progress_ms: u32,
    /// The smallest number since the mark was set.
    left: u32,
}

impl UnansweredCommands {
    /// Time without an answer to any command that was sent before the mark, after which the target is
    /// taken not to answer, in milliseconds.
    pub const LIMIT_MS: u32 = 2000;

    /// Interval between two counts, in milliseconds.
    pub const INTERVAL_MS: u32 = 250;

    /// Begins the watch.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            mark_ms: 0,
            progress_ms: 0,
            left: u32::MAX,
        }
    }

    /// Returns which commands to count at the time `now_ms`: those that have been in flight for this
    /// time, in milliseconds, or longer.
    #[must_use]
    pub const fn age_ms(&self, now_ms: u32) -> u32 {
        now_ms.saturating_sub(self.mark_ms)
    }

    /// Records that `count` such commands are in flight at the time `now_ms`. Returns whether the target
    /// does not answer them.
    #[must_use]
    pub const fn is_overdue(&mut self, now_ms: u32, count: u32) -> bool {
        if count == 0 {
            *self = Self {
                mark_ms: now_ms,
                progress_ms: now_ms,
                left: u32::MAX,
            };
            return false;
        }
        if count < self.left {
            // The first count after the mark is no answer.
            if self.left != u32::MAX {
                self.progress_ms = now_ms;
            }
            self.left = count;
        }
        now_ms.saturating_sub(self.progress_ms) >= Self::LIMIT_MS
    }
}

impl Default for UnansweredCommands {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: u32 = UnansweredCommands::INTERVAL_MS;

    /// Returns when `in_flight`, the times when commands are sent and answered, are taken to be unanswered;
    /// `None` if they are not within a minute.
    fn overdue_at(in_flight: &[(u32, Option<u32>)]) -> Option<u32> {
        let mut watch = UnansweredCommands::new();
        (0..60_000).step_by(INTERVAL as usize).find(|now| {
            let age = watch.age_ms(*now);
            let counted = in_flight.iter().filter(|(sent, answered)| {
                sent + age <= *now && answered.is_none_or(|answered| answered > *now)
            });
            watch.is_overdue(*now, u32::try_from(counted.count()).unwrap())
        })
    }

    #[test]
    fn a_command_without_an_answer() {
        assert_eq!(overdue_at(&[(0, None)]), Some(UnansweredCommands::LIMIT_MS));
        assert_eq!(overdue_at(&[]), None);
    }

    #[test]
    fn later_commands_do_not_hide_it() {
        let mut commands: Vec<_> = (0..10_000).map(|at| (at, Some(at + 100))).collect();
        assert_eq!(overdue_at(&commands), None);
        commands.push((5000, None));
        let limit = 5000 + 100 + UnansweredCommands::LIMIT_MS + 2 * INTERVAL;
        assert!(overdue_at(&commands).unwrap() <= limit);
    }

    #[test]
    fn a_slow_target_has_its_time() {
        // The queue is full. The target answers one command every 1.5 s.
        let commands: Vec<_> = (1..20).map(|n| (0, Some(1500 * n))).collect();
        assert_eq!(overdue_at(&commands), None);
        // A single one is answered just in time.
        assert_eq!(overdue_at(&[(0, Some(UnansweredCommands::LIMIT_MS))]), None);
    }

    #[test]
    fn several_without_an_answer() {
        let commands = [(0, None), (1000, None), (0, Some(1000))];
        let limit = 1000 + UnansweredCommands::LIMIT_MS + INTERVAL;
        assert!(overdue_at(&commands).unwrap() <= limit);
    }
}
