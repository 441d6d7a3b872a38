// SPDX-License-Identifier: GPL-2.0

//! Data in pages that need not be adjacent.
//!
//! C header: [`include/linux/vmalloc.h`](srctree/include/linux/vmalloc.h)

use super::{
    Direction,
    Scatter,
    ScatterTable, //
};
use crate::bindings;
use kernel::{
    page::{
        AsPageIter,
        PAGE_SIZE, //
    },
    prelude::*, //
};

/// Pages that need not be physically adjacent, mapped as one range of bytes. The data starts at a
/// page boundary.
///
/// For large data: one megabyte of contiguous memory is 256 adjacent pages, which a fragmented
/// machine may not have. May be dropped where sleeping is allowed, and in interrupts and softirqs
/// except NMI (`vfree()`). A task must not hold a spinlock or have interrupts disabled.
///
/// # Invariants
///
/// The vector is not empty and never resized.
pub struct Pages(VVec<u8>);

impl Pages {
    /// Allocates `length` zeroed bytes. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if `length` is 0, or 4 GiB or more.
    /// - `ENOMEM`.
    pub fn new(length: usize) -> Result<Self> {
        if length == 0 || u32::try_from(length).is_err() {
            return Err(EINVAL);
        }
        // INVARIANT: `length` is not 0, and no method resizes the vector.
        Ok(Self(VVec::from_elem(0u8, length, GFP_KERNEL)?))
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bytes for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

// SAFETY: The pages are owned. Their bytes are accessible only through references to a `Pages`,
// which do not exist while it is attached.
unsafe impl Scatter for Pages {
    fn fill(&mut self, table: Pin<&mut ScatterTable>) -> Result {
        let mut left = self.0.len();
        let count = left.div_ceil(PAGE_SIZE);
        let pages = self.0.page_iter().take(count);
        let list = |sgl| {
            let (mut entry, mut entries) = (sgl, 0u32);
            for page in pages {
                let length = left.min(PAGE_SIZE);
                // SAFETY: The list has `count` entries, and `pages` yields `count` pages. Each page
                // belongs to the vector and holds its next `length` bytes.
                unsafe {
                    bindings::sg_set_page(entry, page.as_ptr(), length as u32, 0);
                    entry = bindings::sg_next(entry);
                }
                left = left.saturating_sub(length);
                entries = entries.saturating_add(1);
            }
            entries
        };
        // SAFETY: `list` fills all `count` entries and returns their number.
        unsafe { table.fill_with(count.try_into()?, list) }
    }

    #[inline]
    fn allows(&self, _direction: Direction) -> bool {
        true
    }
}
