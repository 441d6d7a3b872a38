// SPDX-License-Identifier: GPL-2.0

//! The memory of the machine.
//!
//! C headers: [`include/linux/mm.h`](srctree/include/linux/mm.h),
//! [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)

use crate::bindings;
use kernel::{
    prelude::*,
    types::NotThreadSafe, //
};

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

/// Runs `act`, in which allocations of this thread do not wait for I/O, whatever their flags are.
/// For who has a lock that I/O may have to wait for. C: `memalloc_noio_save`.
pub fn without_io<R>(act: impl FnOnce() -> R) -> R {
    let _scope = NoIo {
        // SAFETY: Changes a flag of the thread.
        before: unsafe { bindings::memalloc_noio_save() },
        _of_thread: NotThreadSafe,
    };
    act()
}

/// As long as it is there, allocations of its thread do not wait for I/O.
struct NoIo {
    before: c_uint,
    _of_thread: NotThreadSafe,
}

impl Drop for NoIo {
    fn drop(&mut self) {
        // SAFETY: The flags are of this thread.
        unsafe { bindings::memalloc_noio_restore(self.before) };
    }
}
