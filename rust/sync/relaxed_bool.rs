// SPDX-License-Identifier: GPL-2.0

//! Something that is so or not, for whoever looks.

use core::sync::atomic::{
    AtomicBool,
    Ordering, //
};

/// A flag that contexts set and others look at on the way of every I/O.
///
/// Says nothing of anything else: who sees it set need not see what came before that. Where that
/// matters something else has to order it, such as a grace period.
///
/// The kernel crate's [`AtomicFlag`](kernel::sync::atomic::AtomicFlag) is, outside of C, a call of
/// a function for each access. This one is of `core`, and an ordinary load or store of a byte:
/// what `READ_ONCE` and `WRITE_ONCE` are. The memory model of Rust is enough for it, as no C looks
/// at it.
#[derive(Default)]
pub struct RelaxedBool(AtomicBool);

impl RelaxedBool {
    /// A flag that is `set`.
    #[inline]
    pub const fn new(set: bool) -> Self {
        Self(AtomicBool::new(set))
    }

    /// Whether it is set. Any context.
    #[inline]
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it, or not. Any context.
    #[inline]
    pub fn set(&self, set: bool) {
        self.0.store(set, Ordering::Relaxed);
    }
}
