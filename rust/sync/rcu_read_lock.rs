// SPDX-License-Identifier: GPL-2.0

//! RCU read-side critical section of a hot path.
//!
//! C header: [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h)

use super::rcu_guard;
use core::{
    mem::ManuallyDrop,
    ops::Deref, //
};
use kernel::sync::rcu;

/// The functions of C that the inline functions of `<linux/rcupdate.h>` call. A helper would add a
/// function call to each of them.
#[cfg(all(CONFIG_PREEMPT_RCU, not(CONFIG_DEBUG_LOCK_ALLOC)))]
use crate::bindings::{
    __rcu_read_lock as lock,
    __rcu_read_unlock as unlock, //
};
/// The same by helpers, for configurations that have no such functions, or check more.
#[cfg(not(all(CONFIG_PREEMPT_RCU, not(CONFIG_DEBUG_LOCK_ALLOC))))]
use crate::bindings::{
    rcu_read_lock as lock,
    rcu_read_unlock as unlock, //
};

/// An RCU read-side critical section, as [`rcu::Guard`], without a call of a helper. Dropping it ends the
/// section.
///
/// # Invariants
///
/// The section lasts as long as this object.
pub(crate) struct RcuReadLock(ManuallyDrop<rcu::Guard>);

impl RcuReadLock {
    /// Begins a critical section (`rcu_read_lock()`). Any context.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        // SAFETY: May be called in any context. `drop` ends the section.
        unsafe { lock() };
        // SAFETY: The section has begun, and ends when the object is dropped.
        // INVARIANT: As above.
        Self(unsafe { rcu_guard() })
    }
}

impl Deref for RcuReadLock {
    type Target = rcu::Guard;

    #[inline(always)]
    fn deref(&self) -> &rcu::Guard {
        &self.0
    }
}

impl Drop for RcuReadLock {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the caller is in the section. A guard is not `Send`, so this is
        // the thread that began it.
        unsafe { unlock() };
    }
}
