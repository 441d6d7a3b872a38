// SPDX-License-Identifier: GPL-2.0

//! Exclusive access for whoever comes first.

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::{
        Deref,
        DerefMut, //
    },
    sync::atomic::{
        AtomicU32,
        Ordering, //
    },
};

/// Who comes first may claim the value.
const FREE: u32 = 0;
/// There is a guard.
const HELD: u32 = 1;
/// Only who resumes the claim gets a guard.
const KEPT: u32 = 2;

/// A value that one may claim at a time.
///
/// Where a lock makes the second one wait, a claim turns it away: for a resource
/// that is by design used by one at a time, such as the work request of a slot,
/// or a job that need not be done twice. Never spins, never sleeps, and may be
/// used in any context.
///
/// What takes several contexts to do, one after the other, is claimed by the first
/// and [kept](ClaimGuard::keep) for the next, which [resumes](Self::try_resume) it:
/// whoever comes to claim it meanwhile is turned away, and does not get in the way
/// of those either.
///
/// The state is an atomic of `core`, which is compiled to an instruction, where one of the kernel
/// crate is a call of a function, outside of C. The memory model of Rust is enough for it: only
/// guards access the value, and all of them are of Rust.
///
/// # Invariants
///
/// `state` is `FREE`, `HELD` or `KEPT`. While it is `HELD` there is one [`ClaimGuard`],
/// which has exclusive access to `value`; else there is none.
pub struct Claim<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: Access to the value is handed from one thread to another, never shared.
unsafe impl<T: Send> Sync for Claim<T> {}

impl<T> Claim<T> {
    /// Wraps a value that nobody has claimed.
    #[inline]
    pub const fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            value: UnsafeCell::new(value),
        }
    }

    /// Claims the value, until the guard is dropped; `None` if it is claimed, or kept.
    ///
    /// What the last one to hold it did is visible to the next (acquire, release).
    #[inline]
    pub fn try_claim(&self) -> Option<ClaimGuard<'_, T>> {
        self.take(FREE)
    }

    /// Goes on with a claim that was [kept](ClaimGuard::keep); `None` if it was not. Dropping
    /// the guard keeps it again.
    #[inline]
    pub fn try_resume(&self) -> Option<ClaimGuard<'_, T>> {
        self.take(KEPT)
    }

    #[inline]
    fn take(&self, from: u32) -> Option<ClaimGuard<'_, T>> {
        self.state
            .compare_exchange(from, HELD, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        // INVARIANT: It was not `HELD`, so there is no other guard, and now that it is
        // none is made.
        Some(ClaimGuard {
            claim: self,
            after: from,
            _exclusive: PhantomData,
        })
    }

    /// Returns the value; that `self` is borrowed exclusively shows that nobody
    /// has claimed it.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Exclusive access to the value of a [`Claim`], given up when dropped: the claim is then
/// what it was before.
///
/// # Invariants
///
/// It is the only guard of its claim, which is `HELD`; `after` is `FREE` or `KEPT`.
#[must_use = "the claim is given up at once if the guard is unused"]
pub struct ClaimGuard<'a, T> {
    claim: &'a Claim<T>,
    after: u32,
    // As `&mut T`, which is `Sync` only if `T` is.
    _exclusive: PhantomData<&'a mut T>,
}

impl<T> ClaimGuard<'_, T> {
    /// Gives up the access, and keeps the claim for who [resumes](Claim::try_resume) it.
    #[inline]
    pub fn keep(mut self) {
        self.after = KEPT;
    }

    /// Gives up the access and the claim.
    #[inline]
    pub fn free(mut self) {
        self.after = FREE;
    }
}

impl<T> Deref for ClaimGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: By the invariant of the type nobody else has access.
        unsafe { &*self.claim.value.get() }
    }
}

impl<T> DerefMut for ClaimGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: By the invariant of the type nobody else has access.
        unsafe { &mut *self.claim.value.get() }
    }
}

impl<T> Drop for ClaimGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // INVARIANT: Here the guard ends.
        self.claim.state.store(self.after, Ordering::Release);
    }
}
