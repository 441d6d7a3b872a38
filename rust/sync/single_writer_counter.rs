// SPDX-License-Identifier: GPL-2.0

//! Numbers that one context adds to and anybody reads.

use core::cell::UnsafeCell;

/// A number that one context at a time adds to, such as the handlers of one completion queue,
/// and that anybody reads.
///
/// Adding is an ordinary load and an ordinary store: no locked instruction, and no call, which
/// an [`Atomic`](kernel::sync::atomic::Atomic) is outside of C. In return two that add at the
/// same time may lose what one of them adds; it is for the owner of the counter to see that they
/// take turns. It wraps around.
///
/// A reader sees a value that the counter had, soon after it had it; of several counters not
/// all of the same moment.
///
/// # Invariants
///
/// The value is accessed whole, by volatile loads and stores of a machine word, only
/// (`READ_ONCE`, `WRITE_ONCE`).
#[derive(Default)]
#[repr(transparent)]
pub struct SingleWriterCounter(UnsafeCell<u64>);

// A word of the machine cannot be torn.
#[cfg(CONFIG_64BIT)]
// SAFETY: By the type invariant accesses of several threads are to a whole word, which is no
// data race in the kernel's memory model, and every value is valid.
unsafe impl Sync for SingleWriterCounter {}

impl SingleWriterCounter {
    /// A counter that begins at 0.
    #[inline]
    pub const fn new() -> Self {
        // INVARIANT: Nobody accesses it yet.
        Self(UnsafeCell::new(0))
    }

    /// Adds `count`. Any context, but one at a time.
    #[inline]
    pub fn add(&self, count: u64) {
        self.set(self.get().wrapping_add(count));
    }

    /// Sets it. Any context, but one at a time, as for adding.
    #[inline]
    pub fn set(&self, value: u64) {
        // SAFETY: The pointer is that of a `u64` that lives as long as `self`.
        // INVARIANT: The store is volatile, and of a word.
        unsafe { self.0.get().write_volatile(value) };
    }

    /// The number. Any context.
    #[inline]
    pub fn get(&self) -> u64 {
        // SAFETY: As above.
        unsafe { self.0.get().read_volatile() }
    }
}
