// SPDX-License-Identifier: GPL-2.0

//! When the namespaces of a target are looked at again without anybody asking for it.

use crate::policy::backoff::Backoff;

/// What came of a look at the namespaces, and of bringing the disks in line with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The disks are what they are to be.
    Done,
    /// Something is missing, for a reason that may pass.
    Passing,
    /// The target said that it would be so each time.
    Lasting,
}

/// The looks at the namespaces, as far as another one depends on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Looks {
    /// How many in a row left something missing.
    failed: u32,
}

impl Looks {
    /// The longest pause, in milliseconds: each look asks for every namespace.
    const LONGEST_MS: u32 = 60_000;

    /// Takes note of what came of a look. Answers after how many milliseconds another one follows
    /// by itself, which `random`, any number, makes up to a quarter shorter; `None` if none does.
    #[must_use]
    pub fn after(&mut self, outcome: Outcome, random: u32) -> Option<u32> {
        match outcome {
            Outcome::Done => {
                *self = Self::default();
                None
            }
            Outcome::Lasting => None,
            Outcome::Passing => {
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
        let mut looks = Looks::default();
        let pauses = [(); 10].map(|()| looks.after(Outcome::Passing, 0));
        let expected = [
            250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000,
        ];
        assert_eq!(pauses, expected.map(Some));
    }

    #[test]
    fn what_is_done_ends_it() {
        let mut looks = Looks::default();
        let _ = [(); 5].map(|()| looks.after(Outcome::Passing, 0));
        assert_eq!(looks.after(Outcome::Done, 0), None);
        // The next trouble is another one.
        assert_eq!(looks.after(Outcome::Passing, 0), Some(250));
    }

    #[test]
    fn what_lasts_is_not_looked_at_again_and_forgets_nothing() {
        let mut looks = Looks::default();
        assert_eq!(looks.after(Outcome::Lasting, 0), None);
        assert_eq!(looks.after(Outcome::Passing, 0), Some(250));
        assert_eq!(looks.after(Outcome::Lasting, 0), None);
        assert_eq!(looks.after(Outcome::Passing, 0), Some(500));
    }

    #[test]
    fn there_is_a_pause_however_often_it_fails() {
        let mut looks = Looks { failed: u32::MAX };
        for _ in 0..3 {
            assert_eq!(looks.after(Outcome::Passing, 0), Some(60_000));
        }
        // Never none, so that nobody is asked without end.
        for failed in [0, 1, 31, 32, u32::MAX] {
            let pause = Looks { failed }.after(Outcome::Passing, u32::MAX);
            assert!(pause.is_some_and(|ms| ms > 180), "{failed}: {pause:?}");
        }
    }
}
