// SPDX-License-Identifier: GPL-2.0

//! Values whose drop sleeps, which may be dropped in any context.

use super::device::DeviceRef;
use crate::bindings;
use core::{
    mem::ManuallyDrop,
    ops::{
        Deref,
        DerefMut, //
    },
};
use kernel::prelude::*;

/// An object of a device whose drop sleeps.
pub(in crate::rdma) trait OfDevice: Send + 'static {
    /// Returns the device.
    fn device(&self) -> &DeviceRef;
}

/// A value whose drop sleeps. In a context that must not sleep, its drop is left to a work item, which the removal
/// of the device waits for. Without memory for the work item, the value is leaked, with a log message: the device
/// is not removed then.
pub(in crate::rdma) struct SleepingDrop<T: OfDevice>(ManuallyDrop<T>);

impl<T: OfDevice> SleepingDrop<T> {
    #[inline]
    pub(in crate::rdma) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T: OfDevice> Deref for SleepingDrop<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: OfDevice> DerefMut for SleepingDrop<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: OfDevice> Drop for SleepingDrop<T> {
    fn drop(&mut self) {
        // SAFETY: The value is not used after this, and dropped once.
        let value = unsafe { ManuallyDrop::take(&mut self.0) };
        match may_sleep() {
            true => drop(value),
            false => defer(value),
        }
    }
}

/// Drops `value` in a work item. Any context.
///
/// Inlined, it takes 2 KiB of stack where a queue pair of a sample is dropped (`rrdma_multicast`).
#[inline(never)]
fn defer<T: OfDevice>(value: T) {
    let device = value.device().clone();
    if device.defer(GFP_ATOMIC, value, drop).is_err() {
        pr_err!(
            "{}: no memory to drop an object of the device, which leaks: it was dropped in atomic context\n",
            device.name()
        );
    }
}

/// Returns whether the caller may sleep: it holds no spinlock, is in no interrupt, softirq or RCU read-side critical
/// section. With `CONFIG_PREEMPT_RCU`, the kernel counts all of them. C: `in_atomic()`, `irqs_disabled()`,
/// `rcu_preempt_depth()`.
pub(in crate::rdma) fn may_sleep() -> bool {
    // SAFETY: The function has no requirements.
    unsafe { bindings::may_sleep() }
}
