// SPDX-License-Identifier: GPL-2.0

//! Delays between attempts.

/// Delays that double up to a maximum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    longest_ms: u32,
}

impl Backoff {
    /// Delay before the first attempt, in milliseconds. It is short, because most outages are: a
    /// cable is plugged in again, or a target restarts.
    const FIRST_MS: u32 = 250;

    /// Returns delays of at most `longest_ms`.
    pub const fn new(longest_ms: u32) -> Self {
        Self { longest_ms }
    }

    /// Returns the delay after a number of failed attempts, in milliseconds.
    ///
    /// `random`, any number, shortens the delay by up to a quarter, so that hosts that lost a
    /// target at the same time do not all reconnect at the same time.
    pub fn pause_ms(self, attempts: u32, random: u32) -> u32 {
        let doubled = match 1_u32.checked_shl(attempts) {
            Some(factor) => Self::FIRST_MS.saturating_mul(factor),
            None => u32::MAX,
        };
        let pause = doubled.min(self.longest_ms);
        // `random` / 2^32 of a quarter of the delay.
        let less = u64::from(pause / 4).saturating_mul(random.into()) >> u32::BITS;
        pause.saturating_sub(less as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff = Backoff::new(10_000);
        let pauses: Vec<u32> = (0..8).map(|n| backoff.pause_ms(n, 0)).collect();
        assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
    }

    #[test]
    fn any_number_of_attempts() {
        for longest in [1, 250, 10_000, u32::MAX] {
            for attempts in [31, 32, 33, u32::MAX] {
                assert_eq!(Backoff::new(longest).pause_ms(attempts, 0), longest);
            }
        }
    }

    #[test]
    fn at_most_a_quarter_is_taken_off() {
        for longest in [0, 1, 3, 250, 10_000, u32::MAX] {
            let backoff = Backoff::new(longest);
            for attempts in [0, 5, 40] {
                let whole = backoff.pause_ms(attempts, 0);
                for random in [1, u32::MAX / 2, u32::MAX] {
                    let pause = backoff.pause_ms(attempts, random);
                    assert!(pause <= whole && pause >= whole - whole / 4);
                }
                assert!(whole < 8 || backoff.pause_ms(attempts, u32::MAX) < whole);
            }
        }
    }
}
