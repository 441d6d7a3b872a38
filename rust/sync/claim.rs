// SPDX-License-Identifier: GPL-2.0

//! Exclusive access for whoever comes first.

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::{Deref, DerefMut},
};
use kernel::sync::atomic::{ordering, AtomicFlag};

/// A value that one may claim at a time.
///
/// Where a lock makes the second one wait, a claim turns it away: for a resource
/// that is by design used by one at a time, such as the work request of a slot,
/// or a job that need not be done twice. Never spins, never sleeps, and may be
/// used in any context.
///
/// # Invariants
///
/// While `claimed` is true because of [`Claim::try_claim`], the one [`ClaimGuard`]
/// that this call returned has exclusive access to `value`.
pub struct Claim<T> {
    claimed: AtomicFlag,
    value: UnsafeCell<T>,
}

// SAFETY: Access to the value is handed from one thread to another, never shared.
unsafe impl<T: Send> Sync for Claim<T> {}

impl<T> Claim<T> {
    /// Wraps a value that nobody has claimed.
    #[inline]
    pub const fn new(value: T) -> Self {
        Self {
            claimed: AtomicFlag::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Claims the value, until the guard is dropped; `None` if it is claimed.
    ///
    /// What the last one to hold it did is visible to the next (acquire, release).
    #[inline]
    pub fn try_claim(&self) -> Option<ClaimGuard<'_, T>> {
        if self.claimed.xchg(true, ordering::Acquire) {
            return None;
        }
        // INVARIANT: The flag was false, so there is no other guard, and now it
        // keeps others from being made.
        Some(ClaimGuard {
            claim: self,
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

/// Exclusive access to the value of a [`Claim`], given up when dropped.
///
/// # Invariants
///
/// It is the only guard of its claim, whose flag is set.
#[must_use = "the claim is given up at once if the guard is unused"]
pub struct ClaimGuard<'a, T> {
    claim: &'a Claim<T>,
    // As `&mut T`, which is `Sync` only if `T` is.
    _exclusive: PhantomData<&'a mut T>,
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
        self.claim.claimed.store(false, ordering::Release);
    }
}
