// SPDX-License-Identifier: GPL-2.0

//! Private data that was received, with a connection or with a rejection.

use core::ffi::c_void;

/// The first `BYTES` bytes of the private data of a message.
#[derive(Clone, Copy)]
pub(super) struct PrivateData<const BYTES: usize> {
    bytes: [u8; BYTES],
    length: usize,
}

impl<const BYTES: usize> PrivateData<BYTES> {
    /// No private data.
    pub(super) const EMPTY: Self = Self {
        bytes: [0; BYTES],
        length: 0,
    };

    /// Copies private data; returns `None` if `data` is null.
    ///
    /// # Safety
    ///
    /// `data` must be valid for reads of `length` bytes, or null.
    pub(super) unsafe fn copy(data: *const c_void, length: u8) -> Option<Self> {
        if data.is_null() {
            return None;
        }
        // SAFETY: By the safety requirements, `data` is valid for `length` bytes, as it is not null.
        let data = unsafe { core::slice::from_raw_parts(data.cast::<u8>(), length.into()) };
        let mut copy = Self::EMPTY;
        for (to, from) in copy.bytes.iter_mut().zip(data) {
            *to = *from;
        }
        copy.length = data.len().min(BYTES);
        Some(copy)
    }

    /// Returns the private data that is kept.
    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}
