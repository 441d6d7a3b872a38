// SPDX-License-Identifier: GPL-2.0

//! CPUs.
//!
//! C headers: [`include/linux/cpumask.h`](srctree/include/linux/cpumask.h),
//! [`include/linux/sched.h`](srctree/include/linux/sched.h)

use crate::bindings;

/// Returns the number of online CPUs. Any context. C: `num_online_cpus()`.
pub fn online() -> u32 {
    // SAFETY: `num_online_cpus()` only reads a counter.
    unsafe { bindings::num_online_cpus() }
}

/// Yields the CPU if another task waits for it: for long loops that do not sleep. May sleep. C:
/// `cond_resched()`.
pub fn cond_resched() {
    // SAFETY: Memory safety has no requirement. A debug kernel warns if the caller may not sleep.
    unsafe { bindings::cond_resched() }
}
