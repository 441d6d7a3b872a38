// SPDX-License-Identifier: GPL-2.0

//! Exclusive access without a lock, for the first claimer.

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    mem,
    ops::{
        Deref,
        DerefMut, //
    },
    sync::atomic::{
        AtomicU32,
        Ordering, //
    },
};

/// Unclaimed: `try_claim` succeeds.
const FREE: u32 = 0;
/// A guard exists.
const HELD: u32 = 1;
/// Kept without a guard: only `try_resume` succeeds.
const KEPT: u32 = 2;
/// A guard exists, and another context has called its owner.
const CALLED: u32 = 3;

/// A value that one context at a time may claim.
///
/// Where a lock makes the second context wait, a claim fails. It is for resources that have one
/// user at a time by design, such as the work request of a slot, and for jobs that need to be done
/// once. Never spins or sleeps; any context.
///
/// A job of several contexts in sequence is claimed by the first one and [kept](ClaimGuard::keep)
/// for the next one, which [resumes](Self::try_resume) it. Claims fail meanwhile, and do not
/// disturb the job.
///
/// A context may leave a job to the owner of the claim: it [calls](Self::claim_or_call) the owner if its claim
/// fails. The owner does such a job in any case before it drops the guard, or looks for a call by
/// [`free_unless_called`](ClaimGuard::free_unless_called).
///
/// The state is an atomic of `core`, which compiles to one instruction. An atomic of the kernel
/// crate is a function call. The memory model of Rust suffices, because only guards access the
/// value, and C has none.
///
/// # Invariants
///
/// `state` is one of the constants above. While it is `HELD` or `CALLED`, exactly one [`ClaimGuard`] exists,
/// with exclusive access to `value`. Otherwise there is no guard.
pub struct Claim<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: Only one thread at a time has access to the value. It is moved between threads, not
// shared.
unsafe impl<T: Send> Sync for Claim<T> {}

impl<T> Claim<T> {
    /// Creates an unclaimed value.
    #[inline]
    pub const fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            value: UnsafeCell::new(value),
        }
    }

    /// Claims the value until the guard is dropped. Returns `None` if it is claimed or kept.
    ///
    /// Ordered after the accesses of the previous guard (acquire, release).
    #[inline]
    pub fn try_claim(&self) -> Option<ClaimGuard<'_, T>> {
        self.take(FREE)
    }

    /// Claims the value as [`try_claim`](Self::try_claim) does. If a guard exists, calls its owner instead.
    ///
    /// The owner sees what the caller wrote to the value under earlier claims. The call orders nothing else.
    #[inline]
    pub fn claim_or_call(&self) -> Option<ClaimGuard<'_, T>> {
        loop {
            if let Some(guard) = self.try_claim() {
                return Some(guard);
            }
            let called =
                self.state
                    .compare_exchange(HELD, CALLED, Ordering::Relaxed, Ordering::Relaxed);
            // If the guard is gone by now, claim again.
            if called != Err(FREE) {
                return None;
            }
        }
    }

    /// Resumes a claim that was [kept](ClaimGuard::keep). Returns `None` if there is none. Dropping
    /// the guard keeps the claim again.
    #[inline]
    pub fn try_resume(&self) -> Option<ClaimGuard<'_, T>> {
        self.take(KEPT)
    }

    /// Returns whether the value is claimed or kept. It may be neither by the time this returns.
    #[inline]
    pub fn is_claimed(&self) -> bool {
        self.state.load(Ordering::Relaxed) != FREE
    }

    #[inline]
    fn take(&self, from: u32) -> Option<ClaimGuard<'_, T>> {
        self.state
            .compare_exchange(from, HELD, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        // INVARIANT: `state` was `FREE` or `KEPT`, so there was no guard. It is `HELD` now, so no other
        // one is created.
        Some(ClaimGuard {
            claim: self,
            after: from,
            _exclusive: PhantomData,
        })
    }

    /// Returns the value. `self` is borrowed exclusively, so no guard exists.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Exclusive access to the value of a [`Claim`]. Dropping it restores the previous state of the
/// claim.
///
/// # Invariants
///
/// It is the only guard of its claim, whose state is `HELD` or `CALLED`. `after` is `FREE` or `KEPT`.
#[must_use = "the claim is released at once if the guard is unused"]
pub struct ClaimGuard<'a, T> {
    claim: &'a Claim<T>,
    after: u32,
    // Makes the guard `Sync` only if `T` is, like `&mut T`.
    _exclusive: PhantomData<&'a mut T>,
}

impl<T> ClaimGuard<'_, T> {
    /// Drops the guard, and keeps the claim for [`Claim::try_resume`].
    #[inline]
    pub fn keep(mut self) {
        self.after = KEPT;
    }

    /// Drops the guard, and frees the claim.
    #[inline]
    pub fn free(mut self) {
        self.after = FREE;
    }

    /// Drops the guard and frees the claim, unless another context has called its owner.
    ///
    /// # Errors
    ///
    /// Returns the guard if its owner was called.
    #[inline]
    pub fn free_unless_called(self) -> Result<(), Self> {
        let freed =
            self.claim
                .state
                .compare_exchange(HELD, FREE, Ordering::Release, Ordering::Relaxed);
        match freed {
            // INVARIANT: The guard is gone; the state says so.
            Ok(_) => {
                mem::forget(self);
                Ok(())
            }
            Err(_) => Err(self),
        }
    }
}

impl<T> Deref for ClaimGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: By the type invariants, this guard has exclusive access to the value.
        unsafe { &*self.claim.value.get() }
    }
}

impl<T> DerefMut for ClaimGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: By the type invariants, this guard has exclusive access to the value.
        unsafe { &mut *self.claim.value.get() }
    }
}

impl<T> Drop for ClaimGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // INVARIANT: The guard is gone; the state says so.
        self.claim.state.store(self.after, Ordering::Release);
    }
}
