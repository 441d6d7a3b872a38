// SPDX-License-Identifier: GPL-2.0

//! How long the queues of a controller may take to connect.
//!
//! All queues of an attempt connect at once, but their memory regions are allocated one after the other. An attempt
//! of a controller that lost its connections ends with `ctrl_loss_tmo`, which a user may change meanwhile.

/// Time that queues have to connect, for any number of them, unless `ctrl_loss_tmo` is over before.
const ATTEMPT_MS: u32 = 30_000;

/// Time that queues have at least: an attempt may begin when `ctrl_loss_tmo` is over.
const LEAST_MS: u32 = 5000;

/// Time that each queue adds, for its memory regions. Some devices take a millisecond for one; a queue has at
/// most 256.
const EACH_QUEUE_MS: u32 = 1000;

/// An attempt to connect queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectTime {
    began_ms: u64,
    queues: u32,
}

impl ConnectTime {
    /// Returns the time of an attempt to connect this number of queues, which begins at `began_ms` of any clock.
    pub fn new(began_ms: u64, queues: u32) -> Self {
        Self { began_ms, queues }
    }

    /// Returns when the attempt began.
    pub fn began_ms(self) -> u64 {
        self.began_ms
    }

    /// Returns the longest time that the attempt may take, in milliseconds.
    pub fn most_ms(self) -> u32 {
        ATTEMPT_MS.saturating_add(self.regions_ms())
    }

    /// Returns whether the attempt ends at `now_ms`, because `ctrl_loss_tmo` is over at `loss_end_ms`. Never if that
    /// is `None`.
    pub fn is_over(self, loss_end_ms: Option<u64>, now_ms: u64) -> bool {
        let Some(loss_end_ms) = loss_end_ms else {
            return false;
        };
        let left = loss_end_ms.saturating_sub(self.began_ms);
        let limit = left.max(LEAST_MS.into()).min(ATTEMPT_MS.into());
        let limit = limit.saturating_add(self.regions_ms().into());
        now_ms >= self.began_ms.saturating_add(limit)
    }

    fn regions_ms(self) -> u32 {
        EACH_QUEUE_MS.saturating_mul(self.queues)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGAN: u64 = 1_000_000;

    // 128 queues of 255 commands have 32,640 regions, which take a millisecond each on some devices.
    #[test]
    fn many_queues_have_the_time_for_their_regions() {
        assert_eq!(ConnectTime::new(BEGAN, 1).most_ms(), 31_000);
        assert_eq!(ConnectTime::new(BEGAN, 128).most_ms(), 158_000);
        assert_eq!(ConnectTime::new(BEGAN, u32::MAX).most_ms(), u32::MAX);
    }

    // Also if the time is nearly over.
    #[test]
    fn many_queues_have_the_time_for_their_regions_at_the_end_of_ctrl_loss_tmo() {
        let attempt = ConnectTime::new(BEGAN, 128);
        assert!(!attempt.is_over(Some(BEGAN), BEGAN + 132_999));
        assert!(attempt.is_over(Some(BEGAN), BEGAN + 133_000));
    }

    #[test]
    fn an_attempt_ends_with_ctrl_loss_tmo() {
        let attempt = ConnectTime::new(BEGAN, 1);
        let end = Some(BEGAN + 8000);
        assert!(!attempt.is_over(end, BEGAN + 8999));
        assert!(attempt.is_over(end, BEGAN + 9000));
        assert!(!attempt.is_over(None, u64::MAX));
    }

    #[test]
    fn an_attempt_has_five_seconds_at_least() {
        let attempt = ConnectTime::new(BEGAN, 1);
        for end in [0, BEGAN - 1, BEGAN, BEGAN + 4999] {
            assert!(!attempt.is_over(Some(end), BEGAN + 5999), "until {end}");
            assert!(attempt.is_over(Some(end), BEGAN + 6000), "until {end}");
        }
    }

    #[test]
    fn a_long_ctrl_loss_tmo_does_not_prolong_an_attempt() {
        let attempt = ConnectTime::new(BEGAN, 1);
        let end = Some(BEGAN + 600_000);
        assert!(!attempt.is_over(end, BEGAN + 30_999));
        assert!(attempt.is_over(end, BEGAN + 31_000));
    }

    // What counts is the limit at the time of the decision, not that at the beginning.
    #[test]
    fn a_change_counts_during_the_attempt() {
        let attempt = ConnectTime::new(BEGAN, 1);
        let now = BEGAN + 12_000;
        assert!(!attempt.is_over(Some(BEGAN + 600_000), now));
        assert!(attempt.is_over(Some(BEGAN + 1000), now));
        assert!(!attempt.is_over(Some(BEGAN + 20_000), now));
        assert!(!attempt.is_over(None, now));
    }
}
