// SPDX-License-Identifier: GPL-2.0

//! Memory in pieces, as devices take it.
//!
//! C header: [`include/linux/scatterlist.h`](srctree/include/linux/scatterlist.h)
//!
//! Data that is scattered over memory is [`Scatter`]: it owns its memory and can
//! list the pieces in a [`ScatterTable`]. Whoever takes it, a memory
//! [region](crate::rdma::mr), maps what the table lists for a device, and keeps
//! the data out of reach as long as the device may use it.
//!
//! | data                                | is                                       |
//! |-------------------------------------|------------------------------------------|
//! | [`Buffer`]                          | one piece, up to what `kmalloc` gives    |
//! | [`Pages`]                           | pages from anywhere, for large data      |
//! | [`RequestPayload`](crate::block::RequestPayload)  | the pages of a request of the block layer |

mod buffer;
mod pages;
mod table;

pub use buffer::Buffer;
pub use pages::Pages;
pub use table::ScatterTable;

use kernel::prelude::*;

/// Data that owns its memory and can list it. In which contexts it may be dropped is its
/// own to say.
///
/// # Safety
///
/// [`Scatter::fill`] must fill the table with memory that stays valid, and is
/// touched by nobody else, as long as the implementor exists.
pub unsafe trait Scatter {
    /// Lists the memory. An empty table means no data. Any context.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the table cannot grow.
    fn fill(&mut self, table: Pin<&mut ScatterTable>) -> Result;
}
