// SPDX-License-Identifier: GPL-2.0

//! Delays of rescans that no user or event requests.

use crate::policy::backoff::Backoff;

/// Result of a scan and of the update of the disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanStatus {
    /// The disks match the namespaces.
    Complete,
    /// Something is missing, for a reason that may pass.
    Transient,
    /// Something is missing, and the target reported that a retry would fail.
    Permanent,
}

/// Delays between rescans that no user or event asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RescanBackoff {
    /// Transient results since the last complete scan.
    failed: u32,
}

impl RescanBackoff {
    /// Longest delay, in milliseconds: each scan identifies every namespace.
    const LONGEST_MS: u32 = 60_000;

    /// Records the result of a scan. Returns the delay of the next rescan in milliseconds, or
    /// `None` for no rescan.
    ///
    /// `random`, any number, shortens the delay by up to a quarter.
    #[must_use]
    pub fn next_delay_ms(&mut self, outcome: ScanStatus, random: u32) -> Option<u32> {
        match outcome {
            ScanStatus::Complete => {
                *self = Self::default();
                None
            }
            ScanStatus::Permanent => None,
            ScanStatus::Transient => {
                let pause = Backoff::new(Self::LONGEST_MS).pause_ms(self.failed, random);
                self.failed = self.failed.saturating_add(1);
                Some(pause)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let mut backoff = RescanBackoff::default();
        let pauses = [(); 10].map(|()| backoff.next_delay_ms(ScanStatus::Transient, 0));
        let expected = [
            250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000,
        ];
        assert_eq!(pauses, expected.map(Some));
    }

    #[test]
    fn what_is_done_ends_it() {
        let mut backoff = RescanBackoff::default();
        let _ = [(); 5].map(|()| backoff.next_delay_ms(ScanStatus::Transient, 0));
        assert_eq!(backoff.next_delay_ms(ScanStatus::Complete, 0), None);
        // The next failure is a new one.
        assert_eq!(backoff.next_delay_ms(ScanStatus::Transient, 0), Some(250));
    }

    #[test]
    fn what_lasts_is_not_looked_at_again_and_forgets_nothing() {
        let mut backoff = RescanBackoff::default();
        assert_eq!(backoff.next_delay_ms(ScanStatus::Permanent, 0), None);
        assert_eq!(backoff.next_delay_ms(ScanStatus::Transient, 0), Some(250));
        assert_eq!(backoff.next_delay_ms(ScanStatus::Permanent, 0), None);
        assert_eq!(backoff.next_delay_ms(ScanStatus::Transient, 0), Some(500));
    }

    #[test]
    fn there_is_a_pause_however_often_it_fails() {
        let mut backoff = RescanBackoff { failed: u32::MAX };
        for _ in 0..3 {
            assert_eq!(
                backoff.next_delay_ms(ScanStatus::Transient, 0),
                Some(60_000)
            );
        }
        // Never 0, so rescans do not follow each other without a pause.
        for failed in [0, 1, 31, 32, u32::MAX] {
            let pause = RescanBackoff { failed }.next_delay_ms(ScanStatus::Transient, u32::MAX);
            assert!(pause.is_some_and(|ms| ms > 180), "{failed}: {pause:?}");
        }
    }
}
