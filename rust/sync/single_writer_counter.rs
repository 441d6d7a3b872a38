// SPDX-License-Identifier: GPL-2.0

//! Counters with one writer and any number of readers.

use core::cell::UnsafeCell;

/// A counter that one context at a time adds to, such as the handlers of one completion queue, and
/// that anyone may read.
///
/// Adding is one load and one store, without a locked instruction. Every access of the kernel
/// crate's [`Atomic`](kernel::sync::atomic::Atomic) is a function call. In return, concurrent
/// additions may be lost: the owner of the counter must serialise them. The counter wraps around.
///
/// A reader gets a recent value. The values of several counters may be from different times.
///
/// # Invariants
///
/// The value is accessed only by volatile loads and stores of a machine word (`READ_ONCE()`,
/// `WRITE_ONCE()`).
#[derive(Default)]
#[repr(transparent)]
pub struct SingleWriterCounter(UnsafeCell<u64>);

// A machine word is not torn.
#[cfg(CONFIG_64BIT)]
// SAFETY: By the type invariants, all accesses are of a whole word, which is no data race in the
// kernel's memory model. Every value is valid.
unsafe impl Sync for SingleWriterCounter {}

impl SingleWriterCounter {
    /// Creates a counter with value 0.
    #[inline]
    pub const fn new() -> Self {
        // INVARIANT: There are no accesses yet.
        Self(UnsafeCell::new(0))
    }

    /// Adds `count`. Any context; calls must not overlap.
    #[inline]
    pub fn add(&self, count: u64) {
        self.set(self.get().wrapping_add(count));
    }

    /// Sets the value. Any context; must not overlap with other writes.
    #[inline]
    pub fn set(&self, value: u64) {
        // SAFETY: The pointer points to a `u64` that is valid while `self` is borrowed.
        //
        // INVARIANT: The store is volatile, of a machine word.
        unsafe { self.0.get().write_volatile(value) };
    }

    /// Returns the value. Any context.
    #[inline]
    pub fn get(&self) -> u64 {
        // SAFETY: The pointer points to a `u64` that is valid while `self` is borrowed.
        unsafe { self.0.get().read_volatile() }
    }
}
