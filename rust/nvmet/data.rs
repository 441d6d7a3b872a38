// SPDX-License-Identifier: GPL-2.0

//! The data of a command.

use crate::{
    bindings,
    types::TransportTypes, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::prelude::*;
use rrdma::{
    rdma::{
        dma::DmaBuffer,
        rw::RdmaRw, //
    },
    scatter::{
        Direction,
        Scatter,
        ScatterTable, //
    },
};

/// Memory for the data of a command, in pages that need not be adjacent. May be dropped in any
/// context. C: `sgl_alloc()`.
///
/// # Invariants
///
/// `first` is a list of `entries` entries that this owns, with `length` bytes in total.
pub struct Sgl {
    first: NonNull<bindings::scatterlist>,
    entries: u32,
    length: u32,
}

// SAFETY: The pages are owned, and not tied to a thread.
unsafe impl Send for Sgl {}

// SAFETY: A shared reference gives no access to the pages.
unsafe impl Sync for Sgl {}

impl Sgl {
    /// Allocates memory for `length` bytes, for a command that fills all of it. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `length` is 0; `ENOMEM`.
    pub fn new(length: u32) -> Result<Self> {
        Self::allocate(length, bindings::nvmet_const_GFP_KERNEL)
    }

    /// Allocates memory for `length` bytes, all of them zero. May sleep.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn zeroed(length: u32) -> Result<Self> {
        Self::allocate(length, bindings::nvmet_const_GFP_ZEROED)
    }

    fn allocate(length: u32, flags: bindings::gfp_t) -> Result<Self> {
        if length == 0 {
            return Err(EINVAL);
        }
        let mut entries = 0;
        // SAFETY: `entries` is writable.
        let first = unsafe { bindings::sgl_alloc(length.into(), flags, &mut entries) };
        // INVARIANT: Allocated with these sizes; nobody else has the list.
        Ok(Self {
            first: NonNull::new(first).ok_or(ENOMEM)?,
            entries,
            length,
        })
    }
}

impl Drop for Sgl {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, this owns the list.
        unsafe { bindings::sgl_free(self.first.as_ptr()) };
    }
}

// SAFETY: The pages are owned. Their bytes are accessible only to nvmet, which executes a command
// with the list while nobody else has it, or has only a mapping of it that is not posted.
unsafe impl Scatter for Sgl {
    fn fill(&mut self, table: Pin<&mut ScatterTable>) -> Result {
        let count = self.entries;
        let list = |sgl| {
            let (mut to, mut from) = (sgl, self.first.as_ptr());
            for _ in 0..count {
                // SAFETY: Both lists have `count` entries. Those of `first` have pages.
                unsafe {
                    let page = bindings::sg_page(from);
                    bindings::sg_set_page(to, page, (*from).length, (*from).offset);
                    (to, from) = (bindings::sg_next(to), bindings::sg_next(from));
                }
            }
            count
        };
        // SAFETY: `list` fills all `count` entries.
        unsafe { table.fill_with(count, list) }
    }

    fn allows(&self, _direction: Direction) -> bool {
        true
    }
}

/// Data that came in a capsule: a part of the receive's buffer.
///
/// # Invariants
///
/// `offset + length` does not exceed the buffer, and `length` is not 0.
pub struct InlineData {
    buffer: DmaBuffer,
    offset: usize,
    length: u32,
}

impl InlineData {
    /// Takes the buffer of a receive that has completed.
    ///
    /// # Errors
    ///
    /// Returns the buffer if it does not have `length` bytes at `offset`, or if `length` is 0.
    pub fn new(mut buffer: DmaBuffer, offset: u32, length: u32) -> Result<Self, DmaBuffer> {
        let offset = offset as usize;
        let end = offset.checked_add(length as usize);
        let fits = end.is_some_and(|end| end <= buffer.read().len());
        if length == 0 || !fits {
            return Err(buffer);
        }
        // INVARIANT: Checked above.
        Ok(Self {
            buffer,
            offset,
            length,
        })
    }

    /// Returns the buffer.
    pub fn into_buffer(self) -> DmaBuffer {
        self.buffer
    }
}

/// The data that a command is executed with.
pub enum Data<T: TransportTypes> {
    /// None.
    None,
    /// Data that was read from the host, or that came without a transfer.
    List(Sgl),
    /// Data that is written to the host when the command has succeeded.
    Write(RdmaRw<Sgl, T::Endpoint>),
    /// Data that came in the capsule.
    Inline(InlineData),
}

/// A list of memory for `struct nvmet_req`.
pub(crate) struct RawList {
    pub(crate) first: *mut bindings::scatterlist,
    pub(crate) entries: u32,
    pub(crate) length: u32,
}

impl RawList {
    pub(crate) const NONE: Self = Self {
        first: ptr::null_mut(),
        entries: 0,
        length: 0,
    };
}

impl<T: TransportTypes> Data<T> {
    /// Returns the list of the memory, which is valid while `self` is not changed. In-capsule data is
    /// listed in `entry`.
    ///
    /// # Safety
    ///
    /// `entry` must be valid for writes, and be used by nobody else while the result is used.
    pub(crate) unsafe fn list(&mut self, entry: *mut bindings::scatterlist) -> RawList {
        let sgl = match self {
            Self::None => None,
            Self::List(sgl) => Some(&*sgl),
            Self::Write(write) => write.data(),
            Self::Inline(data) => {
                let bytes = data.buffer.read().get(data.offset..).unwrap_or_default();
                // SAFETY: By the type invariants, so many bytes follow. They are in memory of
                // `kmalloc()`. The rest are the safety requirements.
                unsafe { bindings::sg_init_one(entry, bytes.as_ptr().cast(), data.length) };
                return RawList {
                    first: entry,
                    entries: 1,
                    length: data.length,
                };
            }
        };
        sgl.map_or(RawList::NONE, |sgl| RawList {
            first: sgl.first.as_ptr(),
            entries: sgl.entries,
            length: sgl.length,
        })
    }
}
