// SPDX-License-Identifier: GPL-2.0

//! RCU read-side critical sections.
//!
//! C header: [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h)

use core::{
    marker::PhantomData,
    ops::Deref, //
};

/// The functions of C that the inline functions of `<linux/rcupdate.h>` call. A helper would add a
/// function call to each of them.
#[cfg(not(CONFIG_DEBUG_LOCK_ALLOC))]
use crate::bindings::{
    __rcu_read_lock as lock,
    __rcu_read_unlock as unlock, //
};
/// The same by helpers, for configurations that check more.
#[cfg(CONFIG_DEBUG_LOCK_ALLOC)]
use crate::bindings::{
    rcu_read_lock as lock,
    rcu_read_unlock as unlock, //
};

/// Shows that the caller is in an RCU read-side critical section.
///
/// It is only lent, by [`rcu_read`] or to a callback that runs in such a section: a
/// [`Guard`](kernel::sync::rcu::Guard) of the kernel crate can be leaked, and then outlives the section.
///
/// # Invariants
///
/// A reference is used in the section only.
pub struct RcuSection(PhantomData<*mut ()>);

impl RcuSection {
    /// Returns a reference for the section that the caller is in.
    ///
    /// # Safety
    ///
    /// The section lasts while the result is used.
    #[inline]
    pub unsafe fn of_caller<'a>() -> &'a Self {
        // INVARIANT: By the safety requirements.
        &Self(PhantomData)
    }
}

/// Runs `section` in an RCU read-side critical section (`rcu_read_lock()`). It must not sleep. Any context.
#[inline]
pub fn rcu_read<R>(section: impl FnOnce(&RcuSection) -> R) -> R {
    section(&RcuReadLock::new())
}

/// An RCU read-side critical section, without a call of a helper. Dropping it ends the section.
///
/// # Invariants
///
/// The section lasts as long as this object.
pub(crate) struct RcuReadLock(RcuSection);

impl RcuReadLock {
    /// Begins a critical section (`rcu_read_lock()`). Any context.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        // SAFETY: May be called in any context. `drop` ends the section.
        unsafe { lock() };
        // INVARIANT: The section has begun, and ends when the object is dropped.
        Self(RcuSection(PhantomData))
    }
}

impl Deref for RcuReadLock {
    type Target = RcuSection;

    #[inline(always)]
    fn deref(&self) -> &RcuSection {
        &self.0
    }
}

impl Drop for RcuReadLock {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the caller is in the section. This object is not `Send`, so this
        // is the thread that began it.
        unsafe { unlock() };
    }
}
