// SPDX-License-Identifier: GPL-2.0

//! Values whose drop sleeps, which may be dropped in any context.

use super::later;
use crate::bindings;
use core::{
    mem::ManuallyDrop,
    ops::{
        Deref,
        DerefMut, //
    },
};
use kernel::prelude::*;

/// An object whose drop sleeps, and which a work item may drop.
pub(crate) trait DropsLater: Send + 'static {
    /// Leaves the drop to a work item. Without memory for it, the object is leaked, with a log message. Any context.
    ///
    /// What the object has of a consumer's module keeps that module loaded until the work item has dropped it. So a
    /// function that is not generic is not inlined.
    fn drop_later(self);
}

/// Drops `value` in a work item, as [`DropsLater::drop_later`] does. `what` names its kind in the log. Any context.
///
/// For types without parameters: the work item runs no code of a consumer's module after it has dropped the value.
pub(crate) fn drop_later<T: Send + 'static>(what: &str, value: T) {
    if later(value, drop).is_err() {
        report_leak(what);
    }
}

/// Logs that there was no memory to drop an object of the kind `what`. Any context.
pub(crate) fn report_leak(what: &str) {
    pr_err!("no memory to drop a {what}, which leaks: it was dropped in atomic context\n");
}

/// A value whose drop sleeps. In a context that must not sleep, its drop is left to a work item.
pub(crate) struct SleepingDrop<T: DropsLater>(ManuallyDrop<T>);

impl<T: DropsLater> SleepingDrop<T> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T: DropsLater> Deref for SleepingDrop<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: DropsLater> DerefMut for SleepingDrop<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: DropsLater> Drop for SleepingDrop<T> {
    fn drop(&mut self) {
        // SAFETY: The value is not used after this, and dropped once.
        let value = unsafe { ManuallyDrop::take(&mut self.0) };
        match may_sleep() {
            true => drop(value),
            false => value.drop_later(),
        }
    }
}

/// Returns whether the caller may sleep: it holds no spinlock, is in no interrupt, softirq or RCU read-side critical
/// section. With `CONFIG_PREEMPT_RCU`, the kernel counts all of them. C: `in_atomic()`, `irqs_disabled()`,
/// `rcu_preempt_depth()`.
pub(crate) fn may_sleep() -> bool {
    // SAFETY: The function has no requirements.
    unsafe { bindings::may_sleep() }
}
