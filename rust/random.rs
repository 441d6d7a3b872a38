// SPDX-License-Identifier: GPL-2.0

//! Random numbers.
//!
//! C header: [`include/linux/random.h`](srctree/include/linux/random.h)

use crate::bindings;

/// Returns a cryptographically secure random number. Any context. C: `get_random_u32()`.
pub fn number() -> u32 {
    // SAFETY: `get_random_u32()` may be called in any context.
    unsafe { bindings::get_random_u32() }
}
