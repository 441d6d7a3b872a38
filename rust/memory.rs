// SPDX-License-Identifier: GPL-2.0

//! The memory of the machine, allocations without I/O, and values that are allocated together.
//!
//! C headers: [`include/linux/mm.h`](srctree/include/linux/mm.h),
//! [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)

mod chunks;

pub(crate) use chunks::{
    ChunkBox,
    Chunks,
    CHUNK_BYTES, //
};

use crate::bindings;
use core::mem::MaybeUninit;
use kernel::{
    prelude::*,
    types::NotThreadSafe, //
};

/// Returns the memory of the machine in bytes, without that of the kernel's image. Any context. C:
/// `totalram_pages()`.
pub fn total() -> u64 {
    // SAFETY: `total_memory()` only reads a counter.
    unsafe { bindings::total_memory() }
}

/// Returns the number of free bytes, including the per-CPU free lists. Any context.
///
/// Counts the whole machine, so concurrent allocations change it. Memory that the slab allocator
/// caches is not free. The difference around an allocation is therefore accurate to about 1 MiB.
pub fn free() -> u64 {
    // SAFETY: `free_memory()` only reads counters.
    unsafe { bindings::free_memory() }
}

/// Returns the value of an initialiser.
pub(crate) fn value_of<T>(init: impl Init<T>) -> T {
    let mut place = MaybeUninit::uninit();
    // SAFETY: The place is valid for a value. The initialiser cannot fail, so it writes one.
    unsafe {
        match init.__init(place.as_mut_ptr()) {
            Ok(()) => place.assume_init(),
            Err(never) => match never {},
        }
    }
}

/// Returns `node` if memory can be allocated on this NUMA node, else the number for any node. C:
/// `NUMA_NO_NODE`.
pub fn usable_numa_node(node: i32) -> i32 {
    // SAFETY: The function accepts any number.
    match unsafe { bindings::numa_node_usable(node) } {
        true => node,
        false => bindings::NUMA_NO_NODE,
    }
}

/// Runs `act` with allocations of this thread not waiting for I/O, regardless of their flags. For
/// holders of a lock that I/O may wait for. C: `memalloc_noio_save()`.
pub fn without_io<R>(act: impl FnOnce() -> R) -> R {
    let _scope = NoIo {
        // SAFETY: `memalloc_noio_save()` only changes a flag of the current thread.
        before: unsafe { bindings::memalloc_noio_save() },
        _of_thread: NotThreadSafe,
    };
    act()
}

/// Allocations of the current thread do not wait for I/O while this exists.
struct NoIo {
    before: c_uint,
    _of_thread: NotThreadSafe,
}

impl Drop for NoIo {
    fn drop(&mut self) {
        // SAFETY: `before` is from this thread: `NotThreadSafe` keeps the guard on it.
        unsafe { bindings::memalloc_noio_restore(self.before) };
    }
}
