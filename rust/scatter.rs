// SPDX-License-Identifier: GPL-2.0

//! Scattered memory for devices.
//!
//! A type that implements [`Scatter`] owns memory and lists its pieces in a [`ScatterTable`]. A
//! [memory region](crate::rdma::mr) takes such data, maps the pieces for a device, and keeps the
//! data inaccessible while the device may access it.
//!
//! | data                                             | memory                             |
//! |--------------------------------------------------|------------------------------------|
//! | [`Buffer`]                                       | one `kmalloc()` allocation         |
//! | [`Pages`]                                        | separate pages, for large data     |
//! | [`RequestPayload`](crate::block::RequestPayload) | pages of a block request           |
//!
//! C header: [`include/linux/scatterlist.h`](srctree/include/linux/scatterlist.h)

mod buffer;
mod direction;
mod pages;
mod table;

pub use buffer::Buffer;
pub use direction::Direction;
pub use pages::Pages;
pub use table::{
    ScatterTable,
    Scatterlist, //
};

use kernel::prelude::*;

/// Data that owns its memory and can list it. Each implementation documents the contexts in which
/// it may be dropped.
///
/// # Safety
///
/// [`Scatter::fill`] lists only memory that is valid while the implementor exists, even if it is
/// moved after the call. In the directions that [`Scatter::allows`] returns `true` for, a device may
/// access it: nobody else accesses memory that the device writes, or writes memory that the device
/// reads.
pub unsafe trait Scatter {
    /// Lists the memory; leaves the table empty if there is no data. Any context.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the table cannot grow.
    fn fill(&mut self, table: Pin<&mut ScatterTable>) -> Result;

    /// Returns whether a device may access the listed memory in `direction`. Any context.
    fn allows(&self, direction: Direction) -> bool;
}

// SAFETY: `None` lists no memory.
unsafe impl<D: Scatter> Scatter for Option<D> {
    #[inline]
    fn fill(&mut self, table: Pin<&mut ScatterTable>) -> Result {
        match self {
            Some(data) => data.fill(table),
            None => {
                table.clear();
                Ok(())
            }
        }
    }

    #[inline]
    fn allows(&self, direction: Direction) -> bool {
        self.as_ref().is_none_or(|data| data.allows(direction))
    }
}

/// Data that owns its memory and has it in a list: each [`Scatter`], and data with a list of its own.
///
/// # Safety
///
/// - [`list`](Self::list) returns a list of its own, or of `table`. A list of its own stays valid, and
///   unused by others, while the implementor exists, even if that is moved.
/// - The memory in the list is as [`Scatter`] demands.
pub unsafe trait Listed {
    /// Returns the list of the memory, which may be in `table`. Any context.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the table cannot grow.
    fn list(&mut self, table: Pin<&mut ScatterTable>) -> Result<Scatterlist>;

    /// Returns whether a device may access the listed memory in `direction`. Any context.
    fn allows(&self, direction: Direction) -> bool;
}

// SAFETY: The list is in `table`. The rest are the requirements of `Scatter`.
unsafe impl<D: Scatter> Listed for D {
    fn list(&mut self, mut table: Pin<&mut ScatterTable>) -> Result<Scatterlist> {
        self.fill(table.as_mut())?;
        table.list()
    }

    fn allows(&self, direction: Direction) -> bool {
        Scatter::allows(self, direction)
    }
}
