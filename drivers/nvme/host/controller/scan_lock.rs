// SPDX-License-Identifier: GPL-2.0

//! The right to make, change or remove the disks of a controller.
//!
//! The controller's thread takes it and hands it over to [`ScanWork`]; a user whose command must
//! run with [I/O frozen](super::passthru) takes it, too. The holder may wait for I/O, so those who
//! wait for the lock are idle or can be interrupted: they are no hung tasks.

use super::scan_context::ScanContext;
use crate::{
    ctrl_error::CtrlError,
    disk::Io,
    namespace::ScanResult, //
};
use core::mem;
use kernel::{
    new_condvar, new_mutex,
    prelude::*,
    sync::{
        Arc,
        CondVar,
        Mutex, //
    },
};
use rrdma::{
    block::{
        QueueCounts,
        TagSet, //
    },
    sync::TimedCompletion, //
};

/// What the holder of the scan lock does to the disks in a work item.
pub(super) enum ScanWork {
    /// Update the disks to what a scan found.
    Follow(ScanResult),
    /// Scan, and update the disks.
    Scan(Arc<ScanContext>),
    /// Give the disks these hardware queues.
    SetQueues(Arc<TagSet<Io>>, QueueCounts),
    /// Remove all disks.
    DeleteDisks,
}

/// The scan lock. Its mutex is a leaf.
#[pin_data]
pub(super) struct ScanLock {
    #[pin]
    owner: Mutex<ScanOwner>,
    /// Notified when the lock is released.
    #[pin]
    unlocked: CondVar,
    /// Wakes the controller's thread.
    wake: Arc<TimedCompletion>,
}

/// The owner of the scan lock.
enum ScanOwner {
    Nobody,
    /// The holder of the [`ScanGuard`].
    Guard,
    /// Work that is queued.
    Work(ScanWork),
    /// Nobody: the result of the work that ended is not taken yet.
    Done(Result<(), CtrlError>),
}

impl ScanOwner {
    /// Becomes [`Guard`](Self::Guard), if it is nobody; whether it did.
    fn reserve(&mut self) -> bool {
        let free = matches!(self, Self::Nobody);
        if free {
            *self = Self::Guard;
        }
        free
    }
}

/// The held lock. Dropping it releases the lock.
///
/// # Invariants
///
/// The owner is [`ScanOwner::Guard`], and no other guard exists.
#[must_use = "the lock is released at once if it is unused"]
pub(super) struct ScanGuard<'a>(&'a ScanLock);

impl ScanLock {
    /// A lock that nobody holds; `wake` is completed when work ends.
    pub(super) fn new(wake: Arc<TimedCompletion>) -> impl PinInit<Self> {
        pin_init!(Self {
            owner <- new_mutex!(ScanOwner::Nobody, "rnvmf::ScanLock::owner"),
            unlocked <- new_condvar!("rnvmf::ScanLock::unlocked"),
            wake,
        })
    }

    /// Takes the lock, if nobody holds it and no result waits.
    pub(super) fn try_lock(&self) -> Option<ScanGuard<'_>> {
        // INVARIANT: `reserve` made the guard the owner.
        self.owner.lock().reserve().then(|| ScanGuard(self))
    }

    /// Waits for the lock in a process. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINTR` if the process has a signal.
    pub(super) fn lock_interruptible(&self) -> Result<ScanGuard<'_>> {
        let mut owner = self.owner.lock();
        loop {
            if owner.reserve() {
                // INVARIANT: `reserve` made the guard the owner.
                return Ok(ScanGuard(self));
            }
            if self.unlocked.wait_interruptible(&mut owner) {
                return Err(EINTR);
            }
        }
    }

    /// The work that is queued, and the lock for it.
    pub(super) fn begin_work(&self) -> Option<(ScanWork, ScanGuard<'_>)> {
        let mut owner = self.owner.lock();
        match mem::replace(&mut *owner, ScanOwner::Guard) {
            // INVARIANT: The queued work was the owner until now.
            ScanOwner::Work(work) => Some((work, ScanGuard(self))),
            other => {
                *owner = other;
                None
            }
        }
    }

    /// Takes the result of work that ended, and releases the lock.
    pub(super) fn take_result(&self) -> Option<Result<(), CtrlError>> {
        let mut owner = self.owner.lock();
        match mem::replace(&mut *owner, ScanOwner::Nobody) {
            ScanOwner::Done(result) => {
                self.unlocked.notify_all();
                Some(result)
            }
            other => {
                *owner = other;
                None
            }
        }
    }

    /// Whether work ended whose result is not taken.
    pub(super) fn is_work_done(&self) -> bool {
        matches!(*self.owner.lock(), ScanOwner::Done(_))
    }

    /// Whether somebody holds the lock, who may wait for I/O.
    pub(super) fn is_held(&self) -> bool {
        !matches!(*self.owner.lock(), ScanOwner::Nobody | ScanOwner::Done(_))
    }
}

impl ScanGuard<'_> {
    /// Hands the lock over to `work`, which the caller then queues.
    pub(super) fn hand_over(self, work: ScanWork) {
        self.leave(ScanOwner::Work(work));
    }

    /// The work ended with `result`: wakes the controller's thread, which takes that.
    pub(super) fn finish(self, result: Result<(), CtrlError>) {
        let wake = self.0.wake.clone();
        self.leave(ScanOwner::Done(result));
        wake.complete();
    }

    fn leave(self, next: ScanOwner) {
        *self.0.owner.lock() = next;
        mem::forget(self);
    }
}

impl Drop for ScanGuard<'_> {
    fn drop(&mut self) {
        *self.0.owner.lock() = ScanOwner::Nobody;
        self.0.unlocked.notify_all();
    }
}
