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
use crate::{
    failure::Failure,
    namespace::Namespace,
    netlink::Event, //
};
use core::mem;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Whose turn it is.
pub(super) enum Holder {
    Nobody,
    /// The owner of the [`Turn`].
    Owner,
    /// An errand that is to begin.
    Errand(Errand),
    /// What came of an errand, which is over.
    Done(Result<(), Failure>),
}

/// The turn, until it is dropped, or an errand [started](Controller::start_errand).
///
/// # Invariants
///
/// The controller's turn is [`Holder::Owner`]'s, and it is ours to change that.
#[must_use = "it is somebody else's turn at once if it is unused"]
pub(super) struct Turn<'a>(&'a Controller);

impl Controller {
    /// The turn, if nobody has it.
    pub(super) fn turn_now(&self) -> Option<Turn<'_>> {
        reserve(&mut self.turn.lock()).then(|| Turn(self))
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
        let mut holder = self.turn.lock();
        loop {
            if reserve(&mut holder) {
                return Ok(Turn(self));
            }
            if self.turn_is_over.wait_interruptible(&mut holder) {
                return Err(EINTR);
            }
        }
    }

    /// Starts an errand, which has the turn until [what came of it](Self::take_errand) is taken.
    /// Sleeps.
    pub(super) fn start_errand(self: &Arc<Self>, turn: Turn<'_>, errand: Errand) {
        turn.give(Holder::Errand(errand));
        self.host.run_errand(self.clone());
    }

    /// The errand that is to begin, and its turn.
    pub(super) fn begin_errand(&self) -> Option<(Errand, Turn<'_>)> {
        let mut holder = self.turn.lock();
        match mem::replace(&mut *holder, Holder::Owner) {
            // INVARIANT: It was the errand's until now.
            Holder::Errand(errand) => Some((errand, Turn(self))),
            other => {
                *holder = other;
                None
            }
        }
    }

    /// What came of the errand, once it is done.
    pub(super) fn take_errand(&self) -> Option<Result<(), Failure>> {
        let mut holder = self.turn.lock();
        match mem::replace(&mut *holder, Holder::Nobody) {
            Holder::Done(result) => {
                self.turn_is_over.notify_all();
                Some(result)
            }
            other => {
                *holder = other;
                None
            }
        }
    }

    /// Whether an errand is over, and nobody has [taken](Self::take_errand) what came of it.
    pub(super) fn is_errand_over(&self) -> bool {
        matches!(*self.turn.lock(), Holder::Done(_))
    }

    /// Whether somebody has the turn, who may wait for I/O.
    pub(super) fn is_turn_taken(&self) -> bool {
        !matches!(*self.turn.lock(), Holder::Nobody | Holder::Done(_))
    }
}

/// Takes the turn, if nobody has it.
fn reserve(holder: &mut Holder) -> bool {
    let free = matches!(holder, Holder::Nobody);
    if free {
        *holder = Holder::Owner;
    }
    free
}

impl Turn<'_> {
    /// Removes all namespaces. Sleeps, for I/O too.
    pub(super) fn remove_namespaces(&self) {
        while self.remove_namespace(|_| true) {}
    }

    /// Removes the namespaces that are not there any more. Likewise.
    pub(super) fn remove_lost_namespaces(&self) {
        while self.remove_namespace(Namespace::is_lost) {}
    }

    /// Removes one namespace of which `which` is true, and then tells; `false` if there is none.
    fn remove_namespace(&self, which: impl Fn(&Namespace) -> bool) -> bool {
        let controller = self.0;
        let removed = {
            let mut namespaces = controller.namespaces.lock();
            let place = namespaces.iter().position(which);
            let removed = place.and_then(|place| namespaces.remove(place).ok());
            controller.host.disks_changed();
            controller.shown.lock().namespaces = namespaces.len().try_into().unwrap_or(u32::MAX);
            removed
        };
        let Some(namespace) = removed else {
            return false;
        };
        let portrait = namespace.portrait();
        // Deletes the disk, which waits for its I/O.
        drop(namespace);
        let event = Event::NamespaceRemoved(&portrait);
        controller.host.tell(controller, event);
        true
    }

    /// The errand that has the turn is done; the controller's thread is to see what came of it.
    pub(super) fn end_errand(self, result: Result<(), Failure>) {
        let controller = self.0;
        self.give(Holder::Done(result));
        controller.wake.complete();
    }

    fn give(self, next: Holder) {
        *self.0.turn.lock() = next;
        mem::forget(self);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.turn.lock() = Holder::Nobody;
        self.0.turn_is_over.notify_all();
    }
}
