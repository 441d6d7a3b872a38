// SPDX-License-Identifier: GPL-2.0

//! Values that are allocated together, and owned and freed one by one.

use core::{
    alloc::Layout,
    mem::{
        size_of,
        ManuallyDrop, //
    },
    ops::{
        Deref,
        DerefMut, //
    },
    pin::Pin,
    ptr::{
        self,
        NonNull, //
    },
    sync::atomic::{
        fence,
        AtomicUsize,
        Ordering, //
    },
};
use kernel::{
    alloc::{
        allocator::Kmalloc,
        Allocator,
        NumaNode, //
    },
    prelude::*,
};

/// Largest size of a chunk in bytes, unless one value is larger: a page, so that an allocation needs no
/// pages in sequence, and wastes at most one value. With KASAN, each value has an allocation of its own, so
/// that an access to a freed value is reported.
pub(crate) const CHUNK_BYTES: usize = match cfg!(CONFIG_KASAN) {
    false => 4 << 10,
    true => 0,
};

/// Header of a chunk. Its entries follow.
struct Chunk {
    /// Number of owners: the boxes of the chunk, and the allocator that fills it. The last one frees
    /// the chunk.
    owners: AtomicUsize,
    layout: Layout,
}

/// A value, and the chunk that it is in. The value is the first member, so both have the same
/// address.
#[repr(C)]
struct Entry<T> {
    value: T,
    chunk: NonNull<Chunk>,
}

/// Gives up the ownership of a chunk.
///
/// # Safety
///
/// The caller must be one of the owners, and must not access the chunk afterwards.
#[inline]
unsafe fn release(chunk: NonNull<Chunk>) {
    // SAFETY: The chunk is valid while it has owners.
    if unsafe { chunk.as_ref() }
        .owners
        .fetch_sub(1, Ordering::Release)
        == 1
    {
        // The other owners no longer access the chunk.
        fence(Ordering::Acquire);
        // SAFETY: This was the last owner. `Chunks::grow` allocated the chunk with this layout.
        unsafe { Kmalloc::free(chunk.cast(), chunk.as_ref().layout) };
    }
}

/// Allocates values in chunks of several. Each value is freed on its own; the memory of a chunk
/// when the last of its values is.
///
/// # Invariants
///
/// If `left` is not zero, this object is an owner of `chunk`, whose entries from `next` on are
/// unused; there are `left`.
pub(crate) struct Chunks<T> {
    chunk: Option<NonNull<Chunk>>,
    next: *mut Entry<T>,
    left: usize,
    /// Number of values to allocate in later chunks.
    expected: usize,
}

// SAFETY: Only the owner of this object uses its pointers.
unsafe impl<T> Send for Chunks<T> {}

impl<T> Chunks<T> {
    /// Number of values in the largest chunk.
    const LARGEST: usize = CHUNK_BYTES.saturating_sub(size_of::<Chunk>()) / size_of::<Entry<T>>();

    /// Returns an allocator for about `count` values. Allocates nothing yet.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self {
            chunk: None,
            next: ptr::null_mut(),
            left: 0,
            expected: count,
        }
    }

    /// Allocates a value. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the error of `value`.
    #[inline]
    pub(crate) fn push<E>(&mut self, value: impl Init<T, E>) -> Result<ChunkBox<T>>
    where
        Error: From<E>,
    {
        if self.left == 0 {
            self.grow()?;
        }
        let chunk = self.chunk.ok_or(ENOMEM)?;
        let entry = self.next;
        // SAFETY: By the type invariant, `entry` is an unused one of the chunk, and `left` is not
        // zero. One past the last entry is still within the allocation. If the initialiser fails,
        // it leaves the entry unused.
        unsafe {
            value.__init(&raw mut (*entry).value)?;
            (&raw mut (*entry).chunk).write(chunk);
            chunk.as_ref().owners.fetch_add(1, Ordering::Relaxed);
            self.next = entry.add(1);
        }
        self.left = self.left.wrapping_sub(1);
        // INVARIANT: The entry was initialised above, and is counted.
        // SAFETY: `entry` is within an allocation.
        Ok(ChunkBox(unsafe { NonNull::new_unchecked(entry) }))
    }

    /// Replaces a full chunk.
    #[inline(never)]
    fn grow(&mut self) -> Result {
        let count = self.expected.min(Self::LARGEST).max(1);
        let entries = Layout::array::<Entry<T>>(count).map_err(|_| ENOMEM)?;
        let (layout, offset) = Layout::new::<Chunk>().extend(entries).map_err(|_| ENOMEM)?;
        let memory = Kmalloc::alloc(layout, GFP_KERNEL, NumaNode::NO_NODE)?;
        let chunk = memory.cast::<Chunk>();
        self.release();
        // SAFETY: The allocation has room for the header, and for the entries from `offset` on.
        unsafe {
            chunk.write(Chunk {
                owners: AtomicUsize::new(1),
                layout,
            });
            self.next = chunk.as_ptr().byte_add(offset).cast();
        }
        // INVARIANT: Counted in `owners`. All entries are unused.
        self.chunk = Some(chunk);
        self.left = count;
        self.expected = self.expected.saturating_sub(count);
        Ok(())
    }

    fn release(&mut self) {
        if let Some(chunk) = self.chunk.take() {
            // SAFETY: By the type invariant, this object is an owner.
            unsafe { release(chunk) };
        }
    }
}

impl<T> Drop for Chunks<T> {
    fn drop(&mut self) {
        self.release();
    }
}

/// An owned value in a chunk. The value does not move. May be dropped where its value may be.
///
/// # Invariants
///
/// The entry is initialised, and only this object uses it. It is counted as an owner of its chunk.
pub(crate) struct ChunkBox<T>(NonNull<Entry<T>>);

// SAFETY: It owns its value. Boxes of one chunk share its header only, whose counter is atomic.
unsafe impl<T: Send> Send for ChunkBox<T> {}
// SAFETY: A shared box gives shared access to its value only.
unsafe impl<T: Sync> Sync for ChunkBox<T> {}

impl<T> ChunkBox<T> {
    /// Returns the value, and frees its memory.
    pub(crate) fn into_inner(self) -> T {
        let entry = ManuallyDrop::new(self).0;
        // SAFETY: By the type invariant the entry is initialised, and nobody else uses it. The box is
        // not dropped, and gives up its ownership here.
        unsafe {
            let Entry { value, chunk } = entry.read();
            release(chunk);
            value
        }
    }

    /// Passes the ownership to the caller.
    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<T> {
        ManuallyDrop::new(self).0.cast()
    }

    /// Takes the ownership back.
    ///
    /// # Safety
    ///
    /// `value` must be a result of `into_raw`, whose ownership the caller has.
    #[inline]
    pub(crate) unsafe fn from_raw(value: NonNull<T>) -> Self {
        // INVARIANT: By the safety requirements. The value is the first member of its entry.
        Self(value.cast())
    }

    /// Pins the value, which does not move anyway.
    pub(crate) fn into_pin(self) -> Pin<Self> {
        // SAFETY: A box gives no access that moves its value, once it is pinned.
        unsafe { Pin::new_unchecked(self) }
    }
}

impl<T> Deref for ChunkBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: By the type invariant.
        unsafe { &self.0.as_ref().value }
    }
}

impl<T> DerefMut for ChunkBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: By the type invariant.
        unsafe { &mut self.0.as_mut().value }
    }
}

impl<T> Drop for ChunkBox<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the entry is initialised and owned. It is not used after
        // this.
        unsafe {
            let chunk = self.0.as_ref().chunk;
            ptr::drop_in_place(&raw mut (*self.0.as_ptr()).value);
            release(chunk);
        }
    }
}
