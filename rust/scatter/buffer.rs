// SPDX-License-Identifier: GPL-2.0

//! Data in one piece of memory.

use super::{
    Scatter,
    ScatterTable, //
};
use kernel::{
    alloc::Flags,
    prelude::*, //
};

/// A piece of kernel memory, for messages rather than for I/O.
///
/// A region that it is attached to owns it, so the processor gets at it before
/// and after, never while the device may. May be dropped in any context.
///
/// One word, as a request of a disk that carries one is handed from place to place.
pub struct Buffer(KBox<KVec<u8>>);

impl Buffer {
    /// Allocates `length` zero bytes; what `flags` say of sleeping holds.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(length: usize, flags: Flags) -> Result<Self> {
        let bytes = KVec::from_elem(0u8, length, flags)?;

        Ok(Self(KBox::new(bytes, flags)?))
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

// SAFETY: The vector is owned, its length never changes, and only `&mut` and `&`
// to a `Buffer` that is not attached reach its bytes.
unsafe impl Scatter for Buffer {
    #[inline(always)]
    fn fill(&mut self, table: Pin<&mut ScatterTable>) -> Result {
        table.fill_bytes(&mut self.0)
    }
}
