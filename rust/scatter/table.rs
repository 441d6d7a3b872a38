// SPDX-License-Identifier: GPL-2.0

//! Where in memory data is.

use crate::bindings;
use core::{
    cell::UnsafeCell,
    marker::PhantomPinned, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// The number of entries that need no other memory.
const INLINE_ENTRIES: u32 = 4;

/// A list of the pieces of memory that data is in.
///
/// Made once and filled again and again: short lists fit into it, for the entries of longer
/// ones the kernel has a pool. Pinned while it is filled, as devices are told of it by its
/// address.
///
/// # Invariants
///
/// `size.entries` entries of the list that starts in `first` are in use; it has room for
/// `size.allocated`, with chunks from the pool if these are more than `INLINE_ENTRIES`.
pub struct ScatterTable {
    first: UnsafeCell<[bindings::scatterlist; INLINE_ENTRIES as usize]>,
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

// SAFETY: The chunks from the pool are ours and have no ties to a thread. What the entries
// point to is not accessed.
unsafe impl Send for ScatterTable {}

// SAFETY: With a shared reference only numbers can be read. Who uses the list by `sgl`
// answers for it.
unsafe impl Sync for ScatterTable {}

impl ScatterTable {
    /// Makes an empty table.
    pub fn new() -> Self {
        // INVARIANT: No entries, and no room for any.
        Self {
            first: UnsafeCell::new([pin_init::zeroed(); INLINE_ENTRIES as usize]),
            size: Size::NONE,
            _pin: PhantomPinned,
        }
    }

    /// Fills the table with what `list` writes to it, in place of what it held. Any
    /// context. C: `sg_alloc_table_chained`.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is no room for `count` entries, `EINVAL` if there never is.
    ///
    /// # Safety
    ///
    /// `list`, which gets a list of `count` empty entries, must fill in so many of the
    /// first as it answers, and end the list with the last of them, if that is not the
    /// last of all.
    #[inline(always)]
    pub(crate) unsafe fn fill_with(
        mut self: Pin<&mut Self>,
        count: u32,
        list: impl FnOnce(*mut bindings::scatterlist) -> u32,
    ) -> Result {
        self.as_mut().clear();
        match count {
            0 => return Ok(()),
            // SAFETY: `first` has so many entries, of which none is in use.
            1..=INLINE_ENTRIES => unsafe { bindings::sg_init_table(self.sgl(), count) },
            _ => self.allocate(count)?,
        }
        // INVARIANT: So many were filled in, of those that there is room for.
        *self.size_mut() = Size {
            entries: list(self.sgl()),
            allocated: count,
        };
        Ok(())
    }

    /// Lengthens the list to `count` empty entries; none is in use. The caller takes note of
    /// that.
    #[cold]
    fn allocate(&self, count: u32) -> Result {
        let mut table = self.table();

        // SAFETY: `table` starts in `first`, which has so many entries, of which none is in
        // use. The number asked for is not 0.
        to_result(unsafe {
            bindings::sg_alloc_table_chained(
                &raw mut table,
                count.try_into()?,
                table.sgl,
                INLINE_ENTRIES,
            )
        })
    }

    /// Fills the table with a piece of kernel memory, in place of what it held.
    ///
    /// Nothing makes it empty. The caller must see to it that the bytes are not given to a
    /// device for longer than they are there. Any context. C: `sg_init_one`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is not memory from `kmalloc`, or too much for one entry.
    pub(crate) fn fill_bytes(mut self: Pin<&mut Self>, bytes: &mut [u8]) -> Result {
        self.as_mut().clear();
        if bytes.is_empty() {
            return Ok(());
        }
        let length = u32::try_from(bytes.len())?;

        // SAFETY: The list starts in `first`, of which nothing is in use.
        if !unsafe { bindings::sg_init_linear(self.sgl(), bytes.as_mut_ptr().cast(), length) } {
            return Err(EINVAL);
        }
        // INVARIANT: One was filled in, of those that need no memory.
        *self.size_mut() = Size {
            entries: 1,
            allocated: 1,
        };
        Ok(())
    }

    /// Empties the table. Any context. C: `sg_free_table_chained`.
    #[inline]
    pub fn clear(self: Pin<&mut Self>) {
        if self.size.allocated > INLINE_ENTRIES {
            // SAFETY: We forget the chunks at once.
            unsafe { self.free() };
        }
        // INVARIANT: Nothing is in use, and the chunks were given back.
        *self.size_mut() = Size::NONE;
    }

    /// Gives the chunks back to the pool.
    ///
    /// # Safety
    ///
    /// The list is not used any more, and the chunks are forgotten.
    #[cold]
    unsafe fn free(&self) {
        let mut table = self.table();

        // SAFETY: By the invariants that is what was allocated, and by the requirements of
        // this function it is not used any more.
        unsafe { bindings::sg_free_table_chained(&raw mut table, INLINE_ENTRIES) };
    }

    /// The number of entries.
    #[inline]
    pub fn entries(&self) -> u32 {
        self.size.entries
    }

    /// The bytes that the entries are of.
    pub(crate) fn length(&self) -> u64 {
        let (mut entry, mut bytes) = (self.sgl(), 0u64);
        for _ in 0..self.size.entries {
            // SAFETY: By the invariants there are so many entries, and `sg_next` finds
            // the next, if there is one.
            let (length, next) = unsafe { ((*entry).length, bindings::sg_next(entry)) };
            bytes = bytes.saturating_add(length.into());
            entry = next;
        }
        bytes
    }

    /// The list for C: [`entries`](Self::entries) of it, valid until the table is filled,
    /// cleared or dropped.
    ///
    /// Whoever has a device use it must own the data until the device is done, and see to
    /// it that nobody else uses the list.
    #[inline]
    pub(crate) fn sgl(&self) -> *mut bindings::scatterlist {
        self.first.get().cast()
    }

    /// The table for C.
    fn table(&self) -> bindings::sg_table {
        bindings::sg_table {
            sgl: self.sgl(),
            nents: self.size.entries,
            orig_nents: self.size.allocated,
        }
    }

    #[inline]
    fn size_mut(self: Pin<&mut Self>) -> &mut Size {
        // SAFETY: Nothing is moved out, and the numbers need not be pinned.
        unsafe { &mut self.get_unchecked_mut().size }
    }
}

impl Default for ScatterTable {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ScatterTable {
    fn drop(&mut self) {
        // SAFETY: There will be no more list.
        unsafe { self.free() };
    }
}
