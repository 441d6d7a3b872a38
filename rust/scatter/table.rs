// SPDX-License-Identifier: GPL-2.0

//! Scatterlists.

use crate::bindings;
use core::{
    cell::UnsafeCell,
    marker::PhantomPinned,
    mem::MaybeUninit, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// Number of entries that need no allocation.
const INLINE_ENTRIES: u32 = 4;

/// A list of the pieces of memory that hold data. C: `struct sg_table`.
///
/// It is created once and filled repeatedly. Short lists are stored inline, longer ones in chunks
/// of the kernel's scatterlist pool. It is pinned while filled, because C refers to its entries by
/// address.
///
/// # Invariants
///
/// The list that starts in `first` has room for `size.allocated` entries, and its first
/// `size.entries` are in use. It has chunks from the pool if `size.allocated` exceeds
/// `INLINE_ENTRIES`.
pub struct ScatterTable {
    first: UnsafeCell<MaybeUninit<[bindings::scatterlist; INLINE_ENTRIES as usize]>>,
    size: Size,
    _pin: PhantomPinned,
}

#[derive(Clone, Copy)]
struct Size {
    entries: u32,
    allocated: u32,
}

impl Size {
    const NONE: Self = Self {
        entries: 0,
        allocated: 0,
    };
}

// SAFETY: The chunks are owned and not tied to a thread. The memory that the entries point to is
// not accessed through this type.
unsafe impl Send for ScatterTable {}

// SAFETY: A shared reference gives access only to numbers. Users of the raw list are responsible
// for its synchronisation.
unsafe impl Sync for ScatterTable {}

impl ScatterTable {
    /// Creates an empty table. Its entries are initialised when it is filled.
    pub fn new() -> Self {
        // INVARIANT: The list has no entries and no room.
        Self {
            first: UnsafeCell::new(MaybeUninit::uninit()),
            size: Size::NONE,
            _pin: PhantomPinned,
        }
    }

    /// Creates an empty table where it stays.
    #[inline(always)]
    pub(crate) fn init() -> impl Init<Self> {
        let init = |table: *mut Self| {
            // INVARIANT: The list has no entries and no room.
            // SAFETY: `table` is valid for writing. The other fields need no value.
            unsafe { (&raw mut (*table).size).write(Size::NONE) };
            Ok(())
        };
        // SAFETY: The closure initialises the table, and does not fail.
        unsafe { pin_init::init_from_closure(init) }
    }

    /// Replaces the content with the entries that `list` writes. Any context. C:
    /// `sg_alloc_table_chained()`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINVAL` if `count` exceeds the maximum of C.
    ///
    /// # Safety
    ///
    /// `list` gets a list of `count` empty entries. It must fill the first ones, return their
    /// number, and mark the last one that it filled as the end unless it filled all.
    #[inline(always)]
    pub unsafe fn fill_with(
        mut self: Pin<&mut Self>,
        count: u32,
        list: impl FnOnce(*mut bindings::scatterlist) -> u32,
    ) -> Result {
        self.as_mut().clear();
        match count {
            0 => return Ok(()),
            // SAFETY: `first` has at least `count` entries, and none is in use.
            1..=INLINE_ENTRIES => unsafe { bindings::sg_init_table(self.sgl(), count) },
            _ => self.allocate(count)?,
        }
        // INVARIANT: `list` filled the returned number of the `count` allocated entries.
        *self.size_mut() = Size {
            entries: list(self.sgl()),
            allocated: count,
        };
        Ok(())
    }

    /// Extends the list to `count` empty entries. The caller updates `size`.
    #[cold]
    fn allocate(&self, count: u32) -> Result {
        let mut table = self.table();

        // SAFETY: `table` starts in `first`, which has `INLINE_ENTRIES` entries, none in use.
        // `count` is not 0.
        to_result(unsafe {
            bindings::sg_alloc_table_chained(
                &raw mut table,
                count.try_into()?,
                table.sgl,
                INLINE_ENTRIES,
            )
        })
    }

    /// Replaces the content with one piece of kernel memory. Any context. C: `sg_init_one()`.
    ///
    /// The table does not borrow the bytes: the caller must keep them valid while a device may
    /// access them.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `bytes` is not in the linear mapping, like memory of `kmalloc()`, or is too long
    /// for one entry.
    pub(crate) fn fill_bytes(mut self: Pin<&mut Self>, bytes: &mut [u8]) -> Result {
        self.as_mut().clear();
        if bytes.is_empty() {
            return Ok(());
        }
        let length = u32::try_from(bytes.len())?;

        // SAFETY: The list starts in `first`, and no entry is in use.
        if !unsafe { bindings::sg_init_linear(self.sgl(), bytes.as_mut_ptr().cast(), length) } {
            return Err(EINVAL);
        }
        // INVARIANT: One inline entry is filled.
        *self.size_mut() = Size {
            entries: 1,
            allocated: 1,
        };
        Ok(())
    }

    /// Empties the table. Any context. C: `sg_free_table_chained()`.
    #[inline]
    pub fn clear(self: Pin<&mut Self>) {
        if self.size.allocated > INLINE_ENTRIES {
            // SAFETY: `size` is reset below, so the chunks are not used again.
            unsafe { self.free() };
        }
        // INVARIANT: No entry is in use, and the chunks are freed.
        *self.size_mut() = Size::NONE;
    }

    /// Returns the chunks to the pool.
    ///
    /// # Safety
    ///
    /// The list is not used any more, until `size` is reset.
    #[cold]
    unsafe fn free(&self) {
        let mut table = self.table();

        // SAFETY: By the type invariants, `table` describes the allocated list. By the safety
        // requirements of this function, it is not used any more.
        unsafe { bindings::sg_free_table_chained(&raw mut table, INLINE_ENTRIES) };
    }

    /// Returns the number of entries in use.
    #[inline]
    pub fn entries(&self) -> u32 {
        self.size.entries
    }

    /// Returns the list, with its length.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the length exceeds 32 bits.
    pub(crate) fn list(&self) -> Result<Scatterlist> {
        let length = u32::try_from(self.length())?;
        Ok(Scatterlist::new(self.sgl(), self.entries(), length))
    }

    /// Returns the total length of the entries, in bytes.
    fn length(&self) -> u64 {
        let (mut entry, mut bytes) = (self.sgl(), 0u64);
        for _ in 0..self.size.entries {
            // SAFETY: By the type invariants, `size.entries` entries are in use, and `sg_next()`
            // returns the next one or null.
            let (length, next) = unsafe { ((*entry).length, bindings::sg_next(entry)) };
            bytes = bytes.saturating_add(length.into());
            entry = next;
        }
        bytes
    }

    /// Returns the list for C, with [`entries`](Self::entries) entries. It is valid until the table
    /// is filled, cleared or dropped.
    ///
    /// A caller that passes it to a device must own the data until the device is done, and must
    /// ensure exclusive use of the list.
    #[inline]
    pub(crate) fn sgl(&self) -> *mut bindings::scatterlist {
        self.first.get().cast()
    }

    /// Returns the table for C.
    fn table(&self) -> bindings::sg_table {
        bindings::sg_table {
            sgl: self.sgl(),
            nents: self.size.entries,
            orig_nents: self.size.allocated,
        }
    }

    #[inline]
    fn size_mut(self: Pin<&mut Self>) -> &mut Size {
        // SAFETY: Nothing is moved out of `self`, and `size` is not structurally pinned.
        unsafe { &mut self.get_unchecked_mut().size }
    }
}

/// A list of pieces of memory, for C, with the number of its entries and of their bytes.
#[derive(Clone, Copy)]
pub struct Scatterlist {
    first: *mut bindings::scatterlist,
    entries: u32,
    length: u32,
}

impl Scatterlist {
    /// A list without entries.
    pub const EMPTY: Self = Self::new(core::ptr::null_mut(), 0, 0);

    /// Describes a list of `entries` entries with `length` bytes in total.
    pub const fn new(first: *mut bindings::scatterlist, entries: u32, length: u32) -> Self {
        Self {
            first,
            entries,
            length,
        }
    }

    /// Returns the first entry.
    #[inline]
    pub fn first(&self) -> *mut bindings::scatterlist {
        self.first
    }

    /// Returns the number of entries.
    #[inline]
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Returns the number of bytes.
    #[inline]
    pub fn length(&self) -> u32 {
        self.length
    }
}

impl Default for ScatterTable {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ScatterTable {
    fn drop(&mut self) {
        // SAFETY: `&mut self` is the only reference, and nothing uses the list after this. A device
        // is done with it, because the owner of the mapping unmaps it first, see `ScatterMap`.
        unsafe { self.free() };
    }
}
