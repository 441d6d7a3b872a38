// SPDX-License-Identifier: GPL-2.0

//! Values that are allocated together, and owned and freed one by one.

use core::{
    alloc::Layout,
    marker::PhantomData,
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
        // SAFETY: This was the last owner.
        unsafe { free(chunk) };
    }
}

/// Frees a chunk.
///
/// # Safety
///
/// The last owner must have given up its ownership.
unsafe fn free(chunk: NonNull<Chunk>) {
    // The other owners no longer access the chunk.
    fence(Ordering::Acquire);
    // SAFETY: There is no owner. `Filling::grow` allocated the chunk with this layout.
    unsafe { Kmalloc::free(chunk.cast(), chunk.as_ref().layout) };
}

/// The chunk that is being filled, without the type of its values.
///
/// # Invariants
///
/// This object is an owner of `chunk`, if there is one. If `left` is not zero, there is one, and its
/// entries from `next` on are unused; there are `left`.
struct Filling {
    chunk: Option<NonNull<Chunk>>,
    next: NonNull<u8>,
    left: usize,
    /// Number of values to allocate in later chunks.
    expected: usize,
}

impl Filling {
    /// Replaces a full chunk by one for at most `largest` entries of layout `entry`. May sleep.
    fn grow(&mut self, entry: Layout, largest: usize) -> Result {
        let count = self.expected.min(largest).max(1);
        // The size of an entry is a multiple of its alignment.
        let size = entry.size().checked_mul(count).ok_or(ENOMEM)?;
        let entries = Layout::from_size_align(size, entry.align()).map_err(|_| ENOMEM)?;
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
            self.next = chunk.cast::<u8>().add(offset);
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

/// Allocates values in chunks of several. Each value is freed on its own; the memory of a chunk
/// when the last of its values is.
///
/// # Invariants
///
/// The chunks of `filling` have entries of type `Entry<T>`.
pub(crate) struct Chunks<T> {
    filling: Filling,
    _entries: PhantomData<*mut Entry<T>>,
}

// SAFETY: Only the owner of this object uses its pointers.
unsafe impl<T> Send for Chunks<T> {}

impl<T> Chunks<T> {
    /// Number of values in the largest chunk.
    const LARGEST: usize = CHUNK_BYTES.saturating_sub(size_of::<Chunk>()) / size_of::<Entry<T>>();

    /// Returns an allocator for about `count` values. Allocates nothing yet.
    pub(crate) fn with_capacity(count: usize) -> Self {
        // INVARIANT: There is no chunk.
        Self {
            filling: Filling {
                chunk: None,
                next: NonNull::dangling(),
                left: 0,
                expected: count,
            },
            _entries: PhantomData,
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
        let filling = &mut self.filling;
        if filling.left == 0 {
            filling.grow(Layout::new::<Entry<T>>(), Self::LARGEST)?;
        }
        let chunk = filling.chunk.ok_or(ENOMEM)?;
        let entry = filling.next.as_ptr().cast::<Entry<T>>();
        // SAFETY: By the type invariant, `entry` is an unused one of the chunk, and `left` is not
        // zero. One past the last entry is still within the allocation. If the initialiser fails,
        // it leaves the entry unused.
        unsafe {
            value.__init(&raw mut (*entry).value)?;
            (&raw mut (*entry).chunk).write(chunk);
            chunk.as_ref().owners.fetch_add(1, Ordering::Relaxed);
            filling.next = filling.next.add(size_of::<Entry<T>>());
        }
        filling.left = filling.left.wrapping_sub(1);
        // INVARIANT: The entry was initialised above, and is counted.
        // SAFETY: `entry` is within an allocation.
        Ok(ChunkBox(unsafe { NonNull::new_unchecked(entry) }))
    }
}

impl Drop for Filling {
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
