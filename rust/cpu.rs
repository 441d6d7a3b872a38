// SPDX-License-Identifier: GPL-2.0

//! Processors.
//!
//! C header: [`include/linux/cpumask.h`](srctree/include/linux/cpumask.h)

use crate::bindings;

/// How many processors are online at this moment. Any context.
pub fn online() -> u32 {
    // SAFETY: Reads a counter.
    unsafe { bindings::num_online_cpus() }
}
