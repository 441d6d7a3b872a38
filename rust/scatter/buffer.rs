// SPDX-License-Identifier: GPL-2.0

//! Data in one kernel buffer.

use super::{
    Direction,
    Scatter,
    ScatterTable, //
};
use kernel::{
    alloc::Flags,
    prelude::*, //
};

/// A kernel buffer, for messages rather than for I/O. May be dropped in any context.
///
/// A region that it is attached to owns it, so the CPU accesses it before and after, but never
/// during, the accesses of the device.
///
/// The size is one pointer, because requests of disks carry it through several calls by value.
pub struct Buffer(KBox<KVec<u8>>);

impl Buffer {
    /// Allocates `length` zeroed bytes. `flags` decide whether it may sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(length: usize, flags: Flags) -> Result<Self> {
        let bytes = KVec::from_elem(0u8, length, flags)?;

        Ok(Self(KBox::new(bytes, flags)?))
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

// SAFETY: The vector is owned and never resized. Its bytes are accessible only through references
// to a `Buffer`, which do not exist while it is attached.
unsafe impl Scatter for Buffer {
    #[inline(always)]
    fn fill(&mut self, table: Pin<&mut ScatterTable>) -> Result {
        table.fill_bytes(&mut self.0)
    }

    #[inline]
    fn allows(&self, _direction: Direction) -> bool {
        true
    }
}
