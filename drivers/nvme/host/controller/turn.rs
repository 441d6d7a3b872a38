// SPDX-License-Identifier: GPL-2.0

//! Whose turn it is to make, change or remove disks, or to need that nobody does.
//!
//! It is that of the controller's thread, which has an [errand](super::errand) done, or of a
//! user whose command must be [alone](super::effects). To have it may take as long as I/O does,
//! so those who wait are idle, or can be interrupted: they are no hung tasks.

use super::{
    errand::Errand,
    Controller,
    IDLE, //
};
use crate::failure::Failure;
use core::mem;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The turn, until it is dropped, or an errand [started](Controller::start_errand).
///
/// # Invariants
///
/// The controller's errand is [`Errand::Reserved`], and it is ours to change that.
#[must_use = "it is somebody else's turn at once if it is unused"]
pub(super) struct Turn<'a>(&'a Controller);

impl Controller {
    /// The turn, if nobody has it.
    pub(super) fn turn_now(&self) -> Option<Turn<'_>> {
        reserve(&mut self.errand.lock()).then(|| Turn(self))
    }

    /// Waits for the turn, in the controller's thread. What came of an errand is forgotten.
    pub(super) fn own_turn(&self) -> Turn<'_> {
        loop {
            let _ = self.take_errand();
            if let Some(turn) = self.turn_now() {
                return turn;
            }
            self.wait(IDLE);
        }
    }

    /// Waits for the turn, in a process that can be interrupted.
    ///
    /// # Errors
    ///
    /// `EINTR` if it has a signal.
    pub(super) fn await_turn(&self) -> Result<Turn<'_>> {
        let mut errand = self.errand.lock();
        loop {
            if reserve(&mut errand) {
                return Ok(Turn(self));
            }
            if self.turn_is_over.wait_interruptible(&mut errand) {
                return Err(EINTR);
            }
        }
    }

    /// Starts an errand, which has the turn until [what came of it](Self::take_errand) is taken.
    /// Sleeps.
    pub(super) fn start_errand(self: &Arc<Self>, turn: Turn<'_>, errand: Errand) {
        mem::forget(turn);
        *self.errand.lock() = errand;
        self.host.run_errand(self.clone());
    }

    /// What came of the errand, once it is done.
    pub(super) fn take_errand(&self) -> Option<Result<(), Failure>> {
        let mut errand = self.errand.lock();
        match mem::replace(&mut *errand, Errand::None) {
            Errand::Done(result) => {
                self.turn_is_over.notify_all();
                Some(result)
            }
            other => {
                *errand = other;
                None
            }
        }
    }

    /// Whether somebody has the turn, who may wait for I/O.
    pub(super) fn is_turn_taken(&self) -> bool {
        !matches!(*self.errand.lock(), Errand::None | Errand::Done(_))
    }
}

/// Takes the turn, if nobody has it.
fn reserve(errand: &mut Errand) -> bool {
    let free = matches!(errand, Errand::None);
    if free {
        *errand = Errand::Reserved;
    }
    free
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.errand.lock() = Errand::None;
        self.0.turn_is_over.notify_all();
    }
}
