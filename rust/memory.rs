// SPDX-License-Identifier: GPL-2.0

//! The memory of the machine.
//!
//! C header: [`include/linux/mm.h`](srctree/include/linux/mm.h)

use crate::bindings;

/// Bytes of memory that are free at this moment, in the lists of all processors too. Any
/// context.
///
/// It is the whole machine's: what others allocate and free meanwhile is in it. What the
/// slab allocator keeps to allocate from is not free. So the difference around an
/// allocation is good to a MiB or so, no better.
pub fn free() -> u64 {
    // SAFETY: Reads counters.
    unsafe { bindings::free_memory() }
}
