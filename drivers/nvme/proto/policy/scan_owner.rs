// SPDX-License-Identifier: GPL-2.0

//! The owner of the right to make, change or remove the disks of a controller.
//!
//! The owner is a guard, or work `W` that a guard was handed over to. When the work has ended, its
//! result `R` is kept until somebody takes it. A driver keeps the owner under a lock, and has one
//! guard a [`ScanOwner::Guard`].

use core::mem;

/// The owner.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ScanOwner<W, R> {
    /// Nobody.
    #[default]
    Nobody,
    /// A guard.
    Guard,
    /// Work that is queued and has not begun.
    Work(W),
    /// Nobody, but the result of work was not taken yet.
    Done(R),
}

/// The right belongs to somebody, or a result was not taken yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy;

impl<W, R> ScanOwner<W, R> {
    /// Makes a guard the owner.
    ///
    /// # Errors
    ///
    /// [`Busy`] if the owner is not [`Nobody`](Self::Nobody).
    pub fn try_lock(&mut self) -> Result<(), Busy> {
        match self {
            Self::Nobody => {
                *self = Self::Guard;
                Ok(())
            }
            Self::Guard | Self::Work(_) | Self::Done(_) => Err(Busy),
        }
    }

    /// Ends the guard.
    pub fn unlock(&mut self) {
        *self = Self::Nobody;
    }

    /// Hands the right of the guard over to `work`.
    pub fn hand_over(&mut self, work: W) {
        *self = Self::Work(work);
    }

    /// Begins the queued work, and makes a guard the owner; `None` if no work is queued.
    #[must_use]
    pub fn begin_work(&mut self) -> Option<W> {
        match mem::replace(self, Self::Guard) {
            Self::Work(work) => Some(work),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Ends the guard of work with its result.
    pub fn finish(&mut self, result: R) {
        *self = Self::Done(result);
    }

    /// Takes the result of work, if that has ended.
    #[must_use]
    pub fn take_result(&mut self) -> Option<R> {
        match mem::take(self) {
            Self::Done(result) => Some(result),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Whether a result was not taken yet.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    /// Whether the right belongs to somebody, who may wait for I/O.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        matches!(self, Self::Guard | Self::Work(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards that exist, and results that nobody has taken: counted apart from the owner.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    struct Model {
        guards: u32,
        queued: u32,
        results: u32,
    }

    type Owner = ScanOwner<(), ()>;

    fn steps(owner: &Owner, model: Model) -> Vec<(Owner, Model)> {
        let mut next = vec![];
        let mut step = |change: &dyn Fn(&mut Owner, &mut Model)| {
            let (mut owner, mut model) = (owner.clone(), model);
            change(&mut owner, &mut model);
            next.push((owner, model));
        };
        step(&|owner, model| model.guards += u32::from(owner.try_lock().is_ok()));
        step(&|owner, model| {
            if owner.begin_work().is_some() {
                (model.queued, model.guards) = (model.queued - 1, model.guards + 1);
            }
        });
        step(&|owner, model| model.results -= u32::from(owner.take_result().is_some()));
        if model.guards > 0 {
            let without = Model {
                guards: model.guards - 1,
                ..model
            };
            step(&|owner, model| {
                owner.unlock();
                *model = without;
            });
            step(&|owner, model| {
                owner.hand_over(());
                *model = Model {
                    queued: model.queued + 1,
                    ..without
                };
            });
            step(&|owner, model| {
                owner.finish(());
                *model = Model {
                    results: model.results + 1,
                    ..without
                };
            });
        }
        next
    }

    /// Walks all sequences of calls: there is one owner at most, and no work or result is lost.
    #[test]
    fn one_owner_at_a_time() {
        let mut seen: Vec<(Owner, Model)> = vec![];
        let mut todo = vec![(Owner::default(), Model::default())];
        while let Some(state) = todo.pop() {
            if seen.contains(&state) {
                continue;
            }
            let (owner, model) = &state;
            let expected = match owner {
                Owner::Nobody => (0, 0, 0),
                Owner::Guard => (1, 0, 0),
                Owner::Work(()) => (0, 1, 0),
                Owner::Done(()) => (0, 0, 1),
            };
            assert_eq!((model.guards, model.queued, model.results), expected);
            assert_eq!(owner.is_held(), model.guards + model.queued > 0);
            assert_eq!(owner.is_done(), model.results > 0);
            todo.extend(steps(owner, *model));
            seen.push(state);
        }
        assert_eq!(seen.len(), 4);
    }

    #[test]
    fn work_and_results_go_through() {
        let mut owner = ScanOwner::<&str, u32>::default();
        assert_eq!(owner.try_lock(), Ok(()));
        assert_eq!(owner.try_lock(), Err(Busy));
        owner.hand_over("scan");
        assert_eq!(owner.take_result(), None);
        assert_eq!(owner.begin_work(), Some("scan"));
        assert_eq!(owner.begin_work(), None);
        owner.finish(7);
        // A result that was not taken keeps others out: it would be lost.
        assert_eq!(owner.try_lock(), Err(Busy));
        assert_eq!(owner.take_result(), Some(7));
        assert_eq!(owner, ScanOwner::Nobody);
    }
}
