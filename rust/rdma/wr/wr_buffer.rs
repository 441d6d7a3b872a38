// SPDX-License-Identifier: GPL-2.0

//! Memory for requests that are being made, until they are posted.

use super::request::Request;
use crate::bindings;
use core::{
    mem::MaybeUninit,
    ptr, //
};
use kernel::prelude::*;

/// A vector in memory of somebody else: nothing is allocated as it fills.
///
/// # Invariants
///
/// The first `used` of `places` are initialised.
pub(super) struct FixedVec<'r, T> {
    places: &'r mut [MaybeUninit<T>],
    used: usize,
}

impl<'r, T> FixedVec<'r, T> {
    /// # Safety
    ///
    /// The first `used` of `places` must be initialised.
    #[inline]
    pub(super) unsafe fn new(places: &'r mut [MaybeUninit<T>], used: usize) -> Self {
        // INVARIANT: By the contract.
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

    /// Adds a value, unless there is no place for one more.
    #[inline]
    pub(super) fn push(&mut self, value: T) -> Option<&mut T> {
        let place = self.places.get_mut(self.used)?.write(value);
        // INVARIANT: One more is, and that there was a place means no overflow.
        self.used = self.used.wrapping_add(1);
        Some(place)
    }

    /// The last one.
    #[inline]
    pub(super) fn last(&mut self) -> Option<&mut T> {
        let last = self.places.get_mut(self.used.checked_sub(1)?)?;
        // SAFETY: By the type invariant.
        Some(unsafe { last.assume_init_mut() })
    }

    /// Those from `first` on.
    #[inline]
    pub(super) fn from(&mut self, first: usize) -> &mut [T] {
        let filled = self.places.get_mut(first..self.used).unwrap_or_default();
        // SAFETY: By the type invariant; `MaybeUninit<T>` is laid out as `T` is.
        unsafe { &mut *(ptr::from_mut(filled) as *mut [T]) }
    }

    /// Forgets those from `first` on.
    #[inline]
    pub(super) fn truncate(&mut self, first: usize) {
        // INVARIANT: No more than before.
        self.used = self.used.min(first);
    }

    /// Where the next value goes, if there is a place for it.
    #[inline]
    pub(super) fn next(&mut self) -> *mut T {
        let first: *mut T = self.places.as_mut_ptr().cast();
        first.wrapping_add(self.used)
    }
}

/// Requests, and the pieces of memory that they name.
pub(super) struct WrBuffer<'r> {
    pub(super) requests: FixedVec<'r, Request>,
    pub(super) pieces: FixedVec<'r, bindings::ib_sge>,
}

impl<'r> WrBuffer<'r> {
    /// Room in which nothing is yet.
    #[inline]
    pub(super) fn empty(
        requests: &'r mut [MaybeUninit<Request>],
        pieces: &'r mut [MaybeUninit<bindings::ib_sge>],
    ) -> Self {
        // SAFETY: None of the places need be initialised.
        unsafe {
            Self {
                requests: FixedVec::new(requests, 0),
                pieces: FixedVec::new(pieces, 0),
            }
        }
    }

    /// Adds a request, which follows those that there are, and is followed by the next one.
    #[inline]
    pub(super) fn push(&mut self, request: Request) -> Option<&mut Request> {
        let request = self.requests.push(request)?;
        let next = ptr::from_mut(request).wrapping_add(1);
        request.link(next.cast());
        Some(request)
    }

    /// Takes the requests from `first` on back.
    // The room itself stays in registers: what is called has a slice of it only.
    #[inline(always)]
    pub(super) fn undo(&mut self, first: usize) {
        undo(self.requests.from(first));
        self.requests.truncate(first);
    }
}

/// Takes back what requests that are not posted have changed, the last one first.
#[cold]
pub(super) fn undo(requests: &mut [Request]) {
    for request in requests.iter_mut().rev() {
        request.undo();
    }
}

/// Posts requests, which follow each other up to the last, with `post`, and answers how many of
/// them were posted if not all.
///
/// # Safety
///
/// The requests must be all of a room, complete, and what they name must stay until they
/// complete.
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

/// Which of the requests C has there.
#[cold]
fn position(requests: &mut [Request], raw: *const bindings::ib_send_wr) -> usize {
    let position = requests
        .iter_mut()
        .position(|request| ptr::eq(request.as_raw(), raw));
    position.unwrap_or(0)
}
