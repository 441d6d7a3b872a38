// SPDX-License-Identifier: GPL-2.0

//! Memory for work requests until they are posted.

use super::request::Request;
use crate::bindings;
use core::{
    mem::MaybeUninit,
    ptr, //
};
use kernel::prelude::*;

/// A vector of fixed capacity in borrowed memory. Does not allocate.
///
/// # Invariants
///
/// The first `used` of `places` are initialised.
pub(super) struct FixedVec<'r, T> {
    places: &'r mut [MaybeUninit<T>],
    used: usize,
}

impl<'r, T> FixedVec<'r, T> {
    /// Creates a vector with `used` elements in `places`.
    /// # Safety
    ///
    /// The first `used` of `places` must be initialised.
    #[inline]
    pub(super) unsafe fn new(places: &'r mut [MaybeUninit<T>], used: usize) -> Self {
        // INVARIANT: By the safety requirements of this function.
        Self { places, used }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.used
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.used == self.places.len()
    }

    /// Appends `value`; `None` if the vector is full.
    #[inline]
    pub(super) fn push(&mut self, value: T) -> Option<&mut T> {
        let place = self.places.get_mut(self.used)?.write(value);
        // INVARIANT: One more place is initialised. Does not overflow, as `used` was a valid index.
        self.used = self.used.wrapping_add(1);
        Some(place)
    }

    /// Returns the last element.
    #[inline]
    pub(super) fn last(&mut self) -> Option<&mut T> {
        let last = self.places.get_mut(self.used.checked_sub(1)?)?;
        // SAFETY: By the type invariant, all places before `used` are initialised.
        Some(unsafe { last.assume_init_mut() })
    }

    /// Returns the elements from `first` on.
    #[inline]
    pub(super) fn from(&mut self, first: usize) -> &mut [T] {
        let filled = self.places.get_mut(first..self.used).unwrap_or_default();
        // SAFETY: By the type invariant these places are initialised. `MaybeUninit<T>` has the
        // layout of `T`.
        unsafe { &mut *(ptr::from_mut(filled) as *mut [T]) }
    }

    /// Removes the elements from `first` on, without dropping them.
    #[inline]
    pub(super) fn truncate(&mut self, first: usize) {
        // INVARIANT: `used` does not grow.
        self.used = self.used.min(first);
    }

    /// Returns the address of the next element to be appended; out of bounds if the vector is full.
    #[inline]
    pub(super) fn next(&mut self) -> *mut T {
        let first: *mut T = self.places.as_mut_ptr().cast();
        first.wrapping_add(self.used)
    }
}

/// Work requests, and the memory pieces that they name.
pub(super) struct WrBuffer<'r> {
    pub(super) requests: FixedVec<'r, Request>,
    pub(super) pieces: FixedVec<'r, bindings::ib_sge>,
}

impl<'r> WrBuffer<'r> {
    /// Creates an empty buffer.
    #[inline]
    pub(super) fn empty(
        requests: &'r mut [MaybeUninit<Request>],
        pieces: &'r mut [MaybeUninit<bindings::ib_sge>],
    ) -> Self {
        // SAFETY: With no elements, no place has to be initialised.
        unsafe {
            Self {
                requests: FixedVec::new(requests, 0),
                pieces: FixedVec::new(pieces, 0),
            }
        }
    }

    /// Appends a work request, linked to the place of the next one; `None` if the buffer is full.
    #[inline]
    pub(super) fn push(&mut self, request: Request) -> Option<&mut Request> {
        let request = self.requests.push(request)?;
        let next = ptr::from_mut(request).wrapping_add(1);
        request.link(next.cast());
        Some(request)
    }

    /// Removes the work requests from `first` on, and undoes their changes.
    // Always inlined, so that the buffer stays in registers: the cold function gets only a slice.
    #[inline(always)]
    pub(super) fn undo(&mut self, first: usize) {
        undo(self.requests.from(first));
        self.requests.truncate(first);
    }
}

/// Undoes the changes of work requests that are not posted, the last one first.
#[cold]
pub(super) fn undo(requests: &mut [Request]) {
    for request in requests.iter_mut().rev() {
        request.undo();
    }
}

/// Posts work requests with `post`, after ending the list at the last one. On error, returns how
/// many of them were posted.
///
/// # Safety
///
/// `requests` must be all work requests of a buffer, and complete. The memory that they name must
/// stay valid until they complete.
#[inline(always)]
pub(super) unsafe fn post(
    requests: &mut [Request],
    post: impl FnOnce(*const bindings::ib_send_wr) -> Result<(), (Error, *const bindings::ib_send_wr)>,
) -> Result<(), (Error, usize)> {
    if let Some(last) = requests.last_mut() {
        last.link(ptr::null_mut());
    }
    let first = requests
        .first_mut()
        .map_or(ptr::null_mut(), Request::as_raw);
    post(first).map_err(|(error, bad)| (error, position(requests, bad)))
}

/// Returns the index of the work request at `raw`.
#[cold]
fn position(requests: &mut [Request], raw: *const bindings::ib_send_wr) -> usize {
    let position = requests
        .iter_mut()
        .position(|request| ptr::eq(request.as_raw(), raw));
    position.unwrap_or(0)
}
