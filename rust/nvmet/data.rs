// SPDX-License-Identifier: GPL-2.0

//! The data of a command.

use crate::{
    bindings,
    capsule::Capsule,
    types::TransportTypes, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::prelude::*;
use rrdma::{
    rdma::rw::RdmaRw,
    scatter::{
        Direction,
        Listed,
        ScatterTable,
        Scatterlist, //
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
    #[inline(always)]
    pub fn new(length: u32) -> Result<Self> {
        Self::allocate(length, bindings::nvmet_const_GFP_KERNEL)
    }

    /// Allocates memory for `length` bytes, all of them zero. May sleep.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    #[inline(always)]
    pub fn zeroed(length: u32) -> Result<Self> {
        Self::allocate(length, bindings::nvmet_const_GFP_ZEROED)
    }

    /// Allocates memory for a copy of `length` bytes of the data in a capsule, from `offset` on. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the capsule does not have these bytes; those of [`new`](Self::new).
    pub fn copy_of(capsule: &mut Capsule, offset: u32, length: u32) -> Result<Self> {
        let bytes = capsule.data(offset, length).ok_or(EINVAL)?;
        let copy = Self::new(length)?;
        let (first, source) = (copy.first.as_ptr(), bytes.as_ptr().cast_mut().cast());
        // SAFETY: By the type invariants, `copy` owns the list. The source is only read.
        unsafe { bindings::sg_copy_from_buffer(first, copy.entries, source, bytes.len()) };
        Ok(copy)
    }

    #[inline(always)]
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

    #[inline]
    fn scatterlist(&self) -> Scatterlist {
        Scatterlist::new(self.first.as_ptr(), self.entries, self.length)
    }
}

impl Drop for Sgl {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants, this owns the list.
        unsafe { bindings::sgl_free(self.first.as_ptr()) };
    }
}

// SAFETY: The list and its pages are owned, and stay at their addresses. Their bytes are accessible
// only to nvmet, which executes a command with the list while nobody else has it, or has only a
// mapping of it that is not posted. nvmet does not change the list.
unsafe impl Listed for Sgl {
    #[inline]
    fn list(&mut self, _table: Pin<&mut ScatterTable>) -> Result<Scatterlist> {
        Ok(self.scatterlist())
    }

    #[inline]
    fn allows(&self, _direction: Direction) -> bool {
        true
    }
}

/// Largest number of entries of a list for which nvmet uses the bio in the request.
pub(crate) const MAX_INLINE: u32 = bindings::NVMET_MAX_INLINE_BIOVEC;

/// A list that is too long for the bio in the request.
pub(crate) type LongEntries = [bindings::scatterlist; 2 * MAX_INLINE as usize];

/// The data that a command is executed with.
pub enum Data<T: TransportTypes> {
    /// The command has no data.
    None,
    /// Data that was read from the host, or a copy of in-capsule data.
    List(Sgl),
    /// Data that is written to the host when the command has succeeded.
    Write(RdmaRw<Sgl, T::Endpoint>),
}

impl<T: TransportTypes> Data<T> {
    /// Takes the data out.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Self {
        // SAFETY: Each value is read once, and overwritten without being dropped. Reading the variants
        // one by one lets the compiler move each to where it is used.
        unsafe {
            let taken = match self {
                Self::None => return Self::None,
                Self::List(data) => Self::List(ptr::read(data)),
                Self::Write(data) => Self::Write(ptr::read(data)),
            };
            ptr::write(self, Self::None);
            taken
        }
    }

    /// Returns the list of the memory, which is valid while `self` is not changed.
    #[inline(always)]
    pub(crate) fn list(&self) -> Scatterlist {
        let sgl = match self {
            Self::None => None,
            Self::List(sgl) => Some(sgl),
            Self::Write(write) => Some(write.data()),
        };
        sgl.map_or(Scatterlist::EMPTY, Sgl::scatterlist)
    }
}
