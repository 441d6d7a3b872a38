// SPDX-License-Identifier: GPL-2.0

//! Data in pages.
//!
//! C header: [`include/linux/vmalloc.h`](srctree/include/linux/vmalloc.h)

use super::{
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

/// Pages from anywhere, which the processor sees as one range of bytes.
///
/// For large data: a megabyte in one piece is 256 pages in a row, which a
/// machine that has run for a while may not have. The data begins on a page.
/// May be dropped where one may sleep, and in interrupts and softirqs, but those that
/// cannot be masked (`vfree`); a task must hold no spinlock, nor have interrupts off.
///
/// # Invariants
///
/// The vector is not empty, and its length never changes.
pub struct Pages(VVec<u8>);

impl Pages {
    /// Allocates pages for `length` zero bytes. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for no bytes at all or 4 GiB and more, `ENOMEM`.
    pub fn new(length: usize) -> Result<Self> {
        if length == 0 || u32::try_from(length).is_err() {
            return Err(EINVAL);
        }
        // INVARIANT: Not empty, and no method changes the length.
        Ok(Self(VVec::from_elem(0u8, length, GFP_KERNEL)?))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

// SAFETY: The pages are owned, and only `&mut` and `&` to `Pages` that are not
// attached reach their bytes.
unsafe impl Scatter for Pages {
    fn fill(&mut self, table: Pin<&mut ScatterTable>) -> Result {
        let mut left = self.0.len();
        let count = left.div_ceil(PAGE_SIZE);
        let pages = self.0.page_iter().take(count);
        let list = |sgl| {
            let (mut entry, mut entries) = (sgl, 0u32);
            for page in pages {
                let length = left.min(PAGE_SIZE);
                // SAFETY: There are `count` entries, and no more pages; each page
                // is the vector's, and holds its next `length` bytes.
                unsafe {
                    bindings::sg_set_page(entry, page.as_ptr(), length as u32, 0);
                    entry = bindings::sg_next(entry);
                }
                left = left.saturating_sub(length);
                entries = entries.saturating_add(1);
            }
            entries
        };
        // SAFETY: `list` writes as many entries as it answers, as many as there
        // are.
        unsafe { table.fill_with(count.try_into()?, list) }
    }
}
