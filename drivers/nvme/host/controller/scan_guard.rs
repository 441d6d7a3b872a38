// SPDX-License-Identifier: GPL-2.0

//! Whose turn it is to make, change or remove disks, or to need that nobody does.
//!
//! It is that of the controller's thread, which has its [scan work](super::scan_work) done, or of a
//! user whose command must run with [I/O frozen](super::passthru). To have it may take as long as I/O does,
//! so those who wait are idle, or can be interrupted: they are no hung tasks.

use super::{
    scan_work::ScanWork,
    Controller,
    IDLE, //
};
use crate::{
    ctrl_error::CtrlError,
    event::Event, //
    namespace::Namespace,
};
use core::mem;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Whose turn it is.
pub(super) enum ScanOwner {
    Nobody,
    /// The owner of the [`ScanGuard`].
    Guard,
    /// An errand that is to begin.
    ScanWork(ScanWork),
    /// What came of an errand, which is over.
    Done(Result<(), CtrlError>),
}

/// The turn, until it is dropped, or an errand [started](Controller::start_scan_work).
///
/// # Invariants
///
/// The controller's turn is [`ScanOwner::Guard`]'s, and it is ours to change that.
#[must_use = "it is somebody else's turn at once if it is unused"]
pub(super) struct ScanGuard<'a>(&'a Controller);

impl Controller {
    /// The turn, if nobody has it.
    pub(super) fn try_lock_scan(&self) -> Option<ScanGuard<'_>> {
        reserve(&mut self.scan_owner.lock()).then(|| ScanGuard(self))
    }

    /// Waits for the turn, in the controller's thread. What came of an errand is forgotten.
    pub(super) fn lock_scan(&self) -> ScanGuard<'_> {
        loop {
            let _ = self.take_scan_result();
            if let Some(guard) = self.try_lock_scan() {
                return guard;
            }
            self.wait(IDLE);
        }
    }

    /// Waits for the turn, in a process that can be interrupted.
    ///
    /// # Errors
    ///
    /// `EINTR` if it has a signal.
    pub(super) fn lock_scan_interruptible(&self) -> Result<ScanGuard<'_>> {
        let mut holder = self.scan_owner.lock();
        loop {
            if reserve(&mut holder) {
                return Ok(ScanGuard(self));
            }
            if self.scan_unlocked.wait_interruptible(&mut holder) {
                return Err(EINTR);
            }
        }
    }

    /// Starts an errand, which has the turn until [what came of it](Self::take_scan_result) is taken.
    /// Sleeps.
    pub(super) fn start_scan_work(self: &Arc<Self>, guard: ScanGuard<'_>, work: ScanWork) {
        guard.hand_over(ScanOwner::ScanWork(work));
        self.services.queue_scan_work(self.clone());
    }

    /// The errand that is to begin, and its turn.
    pub(super) fn begin_scan_work(&self) -> Option<(ScanWork, ScanGuard<'_>)> {
        let mut holder = self.scan_owner.lock();
        match mem::replace(&mut *holder, ScanOwner::Guard) {
            // INVARIANT: It was the errand's until now.
            ScanOwner::ScanWork(work) => Some((work, ScanGuard(self))),
            other => {
                *holder = other;
                None
            }
        }
    }

    /// What came of the errand, once it is done.
    pub(super) fn take_scan_result(&self) -> Option<Result<(), CtrlError>> {
        let mut holder = self.scan_owner.lock();
        match mem::replace(&mut *holder, ScanOwner::Nobody) {
            ScanOwner::Done(result) => {
                self.scan_unlocked.notify_all();
                Some(result)
            }
            other => {
                *holder = other;
                None
            }
        }
    }

    /// Whether an errand is over, and nobody has [taken](Self::take_scan_result) what came of it.
    pub(super) fn is_scan_work_done(&self) -> bool {
        matches!(*self.scan_owner.lock(), ScanOwner::Done(_))
    }

    /// Whether somebody has the turn, who may wait for I/O.
    pub(super) fn is_scan_locked(&self) -> bool {
        !matches!(
            *self.scan_owner.lock(),
            ScanOwner::Nobody | ScanOwner::Done(_)
        )
    }
}

/// Takes the turn, if nobody has it.
fn reserve(holder: &mut ScanOwner) -> bool {
    let free = matches!(holder, ScanOwner::Nobody);
    if free {
        *holder = ScanOwner::Guard;
    }
    free
}

impl ScanGuard<'_> {
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
            controller.services.disks_changed();
            let count = namespaces.len().try_into().unwrap_or(u32::MAX);
            controller.status.update(|status| status.namespaces = count);
            removed
        };
        let Some(namespace) = removed else {
            return false;
        };
        let info = namespace.info();
        // Deletes the disk, which waits for its I/O.
        drop(namespace);
        let event = Event::NamespaceRemoved(&info);
        controller.services.events.notify(controller, event);
        true
    }

    /// The errand that has the turn is done; the controller's thread is to see what came of it.
    pub(super) fn finish_scan_work(self, result: Result<(), CtrlError>) {
        let controller = self.0;
        self.hand_over(ScanOwner::Done(result));
        controller.wake.complete();
    }

    fn hand_over(self, next: ScanOwner) {
        *self.0.scan_owner.lock() = next;
        mem::forget(self);
    }
}

impl Drop for ScanGuard<'_> {
    fn drop(&mut self) {
        *self.0.scan_owner.lock() = ScanOwner::Nobody;
        self.0.scan_unlocked.notify_all();
    }
}
