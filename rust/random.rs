// SPDX-License-Identifier: GPL-2.0

//! Random numbers.
//!
//! C header: [`include/linux/random.h`](srctree/include/linux/random.h)

use crate::bindings;

/// Any number of 32 bits, which nobody can foretell. Any context. C: `get_random_u32`.
pub fn number() -> u32 {
    // SAFETY: May be called in any context.
    unsafe { bindings::get_random_u32() }
}
