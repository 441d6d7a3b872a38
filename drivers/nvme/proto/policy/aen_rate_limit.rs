// SPDX-License-Identifier: GPL-2.0

//! Rate limit of asynchronous events.

/// The pause before the host sends the next Asynchronous Event Request.
///
/// The pause doubles while events come at once, so a controller that always has one ready cannot
/// keep the host busy. A change that follows a burst of changes waits for the pause, so the longest
/// one is short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AenRateLimit {
    pause_ms: u32,
}

impl Default for AenRateLimit {
    fn default() -> Self {
        Self {
            pause_ms: Self::SHORTEST_MS,
        }
    }
}

impl AenRateLimit {
    const SHORTEST_MS: u32 = 100;
    const LONGEST_MS: u32 = 2000;

    /// An event that takes this long to come ends the doubling.
    const QUIET_MS: u32 = 1000;

    /// Returns the pause before the next request, in milliseconds.
    pub const fn pause_ms(self) -> u32 {
        self.pause_ms
    }

    /// Returns the limit after a request that the target answered after `unanswered_ms`
    /// milliseconds.
    #[must_use]
    pub fn after(self, unanswered_ms: u32) -> Self {
        let pause_ms = if unanswered_ms >= Self::QUIET_MS {
            Self::SHORTEST_MS
        } else {
            self.pause_ms.saturating_mul(2).min(Self::LONGEST_MS)
        };
        Self { pause_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_always_has_an_event_is_asked_seldom() {
        let mut limit = AenRateLimit::default();
        let mut pauses = vec![limit.pause_ms()];
        for _ in 0..7 {
            limit = limit.after(999);
            pauses.push(limit.pause_ms());
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 2000, 2000, 2000]);
        assert_eq!(limit.after(1000), AenRateLimit::default());
        assert_eq!(limit.after(u32::MAX), AenRateLimit::default());
    }
}
