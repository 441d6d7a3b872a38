// SPDX-License-Identifier: GPL-2.0

//! Processors.
//!
//! C header: [`include/linux/cpumask.h`](srctree/include/linux/cpumask.h)
//! C header: [`include/linux/sched.h`](srctree/include/linux/sched.h)

use crate::bindings;

/// How many processors are online at this moment. Any context.
pub fn online() -> u32 {
    // SAFETY: Reads a counter.
    unsafe { bindings::num_online_cpus() }
}

/// Lets others have the processor if they wait for it (`cond_resched`): for loops
/// that do not sleep. Where it may sleep.
pub fn cond_resched() {
    // SAFETY: The caller may sleep; if it may not, the kernel says so when debugging,
    // and nothing of ours is held.
    unsafe { bindings::cond_resched() }
}
