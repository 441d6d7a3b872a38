// SPDX-License-Identifier: GPL-2.0

//! The lock for adding, changing and removing the disks of a controller.
//!
//! The controller's thread takes the lock and hands it over to [`ScanWork`]. A passthrough command
//! that [freezes I/O](super::passthru) takes it as well. The holder may wait for I/O, so waiters
//! sleep idle or interruptibly: the hung-task detector ignores them.

use crate::{
    ctrl_error::CtrlError,
    namespace::{
        ScanContext,
        ScanResult, //
    },
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
use nvme_proto::policy::scan_owner::ScanOwner;
use rnvmf_disk::Io;
use rrdma::{
    block::{
        QueueCounts,
        TagSet, //
    },
    sync::TimedCompletion, //
};

/// An operation on the disks that a work item does with the scan lock held.
pub(super) enum ScanWork {
    /// Update the disks to the result of a scan.
    Follow(ScanResult),
    /// Scan, and update the disks.
    Scan(Arc<ScanContext>),
    /// Change the number of the disks' hardware queues.
    SetQueues(Arc<TagSet<Io>>, QueueCounts),
    /// Remove all disks.
    DeleteDisks,
}

/// The scan lock. Its mutex is a leaf: no lock is taken under it.
#[pin_data]
pub(super) struct ScanLock {
    #[pin]
    owner: Mutex<LockState>,
    /// Notified when the lock is released.
    #[pin]
    unlocked: CondVar,
    /// Wakes the controller's thread.
    wake: Arc<TimedCompletion>,
}

/// The state of the scan lock: free, held by a guard, held by queued work, or held until the result
/// of ended work is taken.
type LockState = ScanOwner<ScanWork, Result<(), CtrlError>>;

/// The held lock. Dropping it releases the lock.
///
/// # Invariants
///
/// The owner is [`ScanOwner::Guard`], and no other guard exists.
#[must_use = "the lock is released at once if it is unused"]
pub(super) struct ScanGuard<'a>(&'a ScanLock);

impl ScanLock {
    /// Returns a free lock; `wake` is completed when work ends.
    pub(super) fn new(wake: Arc<TimedCompletion>) -> impl PinInit<Self> {
        pin_init!(Self {
            owner <- new_mutex!(LockState::default(), "rnvmf::ScanLock::owner"),
            unlocked <- new_condvar!("rnvmf::ScanLock::unlocked"),
            wake,
        })
    }

    /// Takes the lock if it is free. A result that is not taken yet keeps it held.
    pub(super) fn try_lock(&self) -> Option<ScanGuard<'_>> {
        self.owner.lock().try_lock().ok()?;
        // INVARIANT: `try_lock` made the guard the owner.
        Some(ScanGuard(self))
    }

    /// Waits for the lock. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINTR` if a signal is pending.
    pub(super) fn lock_interruptible(&self) -> Result<ScanGuard<'_>> {
        let mut owner = self.owner.lock();
        loop {
            if owner.try_lock().is_ok() {
                // INVARIANT: `try_lock` made the guard the owner.
                return Ok(ScanGuard(self));
            }
            if self.unlocked.wait_interruptible(&mut owner) {
                return Err(EINTR);
            }
        }
    }

    /// Takes the queued work, with the lock that it holds; `None` if no work is queued.
    pub(super) fn begin_work(&self) -> Option<(ScanWork, ScanGuard<'_>)> {
        let work = self.owner.lock().begin_work()?;
        // INVARIANT: `begin_work` made the guard the owner.
        Some((work, ScanGuard(self)))
    }

    /// Takes the result of ended work, and releases the lock.
    pub(super) fn take_result(&self) -> Option<Result<(), CtrlError>> {
        let result = self.owner.lock().take_result()?;
        self.unlocked.notify_all();
        Some(result)
    }

    /// Whether work has ended and its result is not taken yet.
    pub(super) fn is_work_done(&self) -> bool {
        self.owner.lock().is_done()
    }

    /// Whether the lock is held. Its holder may wait for I/O.
    pub(super) fn is_held(&self) -> bool {
        self.owner.lock().is_held()
    }
}

impl ScanGuard<'_> {
    /// Hands the lock over to `work`, which the caller then queues.
    pub(super) fn hand_over(self, work: ScanWork) {
        self.0.owner.lock().hand_over(work);
        mem::forget(self);
    }

    /// Ends the work with `result`, and wakes the controller's thread to take the result.
    pub(super) fn finish(self, result: Result<(), CtrlError>) {
        let wake = self.0.wake.clone();
        self.0.owner.lock().finish(result);
        mem::forget(self);
        wake.complete();
    }
}

impl Drop for ScanGuard<'_> {
    fn drop(&mut self) {
        self.0.owner.lock().unlock();
        self.0.unlocked.notify_all();
    }
}
