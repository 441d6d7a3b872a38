// SPDX-License-Identifier: GPL-2.0

//! Owner of the right to add, change or remove the disks of a controller.
//!
//! The owner is a guard, or work `W` that a guard was handed over to. The result `R` of work is
//! kept until a thread takes it. A driver keeps a [`ScanOwner`] under a lock, and has one guard
//! while that is [`ScanOwner::Guard`].

use core::mem;

/// An owner.
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

/// The right has an owner, or a result was not taken yet.
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

    /// Begins the queued work, and makes a guard the owner. Returns `None` if no work is queued.
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

    /// Takes the result of work that ended.
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

    /// Returns whether a result was not taken yet.
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    /// Returns whether the right has an owner, which may be waiting for I/O.
    pub const fn is_held(&self) -> bool {
        matches!(self, Self::Guard | Self::Work(_))
    }
}

#[cfg(test)]
mod tests;
