// SPDX-License-Identifier: GPL-2.0

//! A flag with relaxed ordering.

use core::sync::atomic::{
    AtomicBool,
    Ordering, //
};

/// A flag that is read on every I/O.
///
/// Its accesses order no others: a reader that sees the flag set may not see earlier writes of the
/// thread that set it. Where that matters, something else must order them, such as a grace period.
///
/// Every access of the kernel crate's [`AtomicFlag`](kernel::sync::atomic::AtomicFlag) is a
/// function call. This flag uses an atomic of `core`: a load or store of one byte, like
/// `READ_ONCE()` and `WRITE_ONCE()`. The memory model of Rust suffices, because C does not access
/// the flag.
#[derive(Default)]
pub struct RelaxedBool(AtomicBool);

impl RelaxedBool {
    /// Creates a flag.
    #[inline]
    pub const fn new(set: bool) -> Self {
        Self(AtomicBool::new(set))
    }

    /// Returns the flag. Any context.
    #[inline]
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets or clears the flag. Any context.
    #[inline]
    pub fn set(&self, set: bool) {
        self.0.store(set, Ordering::Relaxed);
    }
}
