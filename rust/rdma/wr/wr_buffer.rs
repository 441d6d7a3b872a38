// SPDX-License-Identifier: GPL-2.0

//! Memory for work requests until they are posted.

use super::request::Request;
use crate::bindings;
use core::{
    mem::MaybeUninit,
    ptr, //
};

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
    ///
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
        self.used >= self.places.len()
    }

    /// Appends `value`; `None` if the vector is full.
    #[inline]
    pub(super) fn push(&mut self, value: T) -> Option<&mut T> {
        let place = self.places.get_mut(self.used)?.write(value);
        // INVARIANT: One more place is initialised. Does not overflow, as `used` was a valid index.
        self.used = self.used.wrapping_add(1);
        Some(place)
    }

    /// Returns the address of the next element to be appended; out of bounds if the vector is full.
    #[inline]
    pub(super) fn next(&mut self) -> *mut T {
        let first: *mut T = self.places.as_mut_ptr().cast();
        first.wrapping_add(self.used)
    }
}

/// A list of work requests, linked by `next`.
///
/// # Invariants
///
/// There are `length` work requests from `first` to `last`, whose `next` is null. Each is that of a
/// [`Request`], or of a registration in its region.
#[derive(Clone, Copy)]
pub(super) struct WrList {
    first: *mut bindings::ib_send_wr,
    last: *mut bindings::ib_send_wr,
    length: u32,
}

impl WrList {
    pub(super) const EMPTY: Self = Self {
        first: ptr::null_mut(),
        last: ptr::null_mut(),
        length: 0,
    };

    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.length
    }

    /// Replaces the list by `new`, field by field: an assignment would copy the padding, too.
    #[inline(always)]
    pub(super) fn replace_by(&mut self, new: Self) {
        // INVARIANT: By those of `new`.
        self.first = new.first;
        self.last = new.last;
        self.length = new.length;
    }

    /// Returns the first work request; null if there is none.
    #[inline]
    pub(super) fn first(&self) -> *mut bindings::ib_send_wr {
        self.first
    }

    /// Returns the last work request; null if there is none.
    #[inline]
    pub(super) fn last(&self) -> *mut bindings::ib_send_wr {
        self.last
    }

    /// Appends a work request.
    ///
    /// # Safety
    ///
    /// `wr` must be as the type invariants demand, with `next` null unless another one is appended
    /// next. It must stay valid while it is in the list, and nobody else may access it or the last one
    /// so far.
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, wr: *mut bindings::ib_send_wr) {
        match self.length {
            0 => self.first = wr,
            // SAFETY: By the type invariants and the safety requirements.
            _ => unsafe { (*self.last).next = wr },
        }
        self.last = wr;
        // There are fewer than the entries of a send queue.
        self.length = self.length.wrapping_add(1);
    }

    /// Undoes the changes of the work requests from `from` on, the last one first. They are not
    /// posted.
    #[inline(always)]
    pub(super) fn undo(self, from: u32) {
        undo(self.first, self.length, from);
    }

    /// Undoes the work requests from `from` on, and returns the list without them.
    #[inline(always)]
    pub(super) fn truncated(self, from: u32) -> Self {
        undo(self.first, self.length, from);
        let Some(before) = from.checked_sub(1) else {
            return Self::EMPTY;
        };
        // SAFETY: By the type invariants, the work requests are valid.
        let last = unsafe {
            let last = at(self.first, before);
            (*last).next = ptr::null_mut();
            last
        };
        // INVARIANT: `last` is the last one now.
        Self {
            last,
            length: from,
            ..self
        }
    }
}

// Functions of numbers and pointers, so that a list stays in registers where they are called.

/// Returns work request number `index` of the list that begins with `first`.
///
/// # Safety
///
/// The work requests before it must be valid.
#[cold]
#[inline(never)]
pub(super) unsafe fn at(first: *mut bindings::ib_send_wr, index: u32) -> *mut bindings::ib_send_wr {
    let mut wr = first;
    for _ in 0..index {
        // SAFETY: By the safety requirements of this function.
        match unsafe { wr.as_ref() } {
            Some(before) => wr = before.next,
            None => break,
        }
    }
    wr
}

/// Returns the number of a work request in a list of `length`; `None` if it is not in the list.
///
/// # Safety
///
/// The work requests before `wr` must be valid.
#[cold]
#[inline(never)]
pub(super) unsafe fn position(
    first: *mut bindings::ib_send_wr,
    length: u32,
    wr: *const bindings::ib_send_wr,
) -> Option<u32> {
    // SAFETY: Ends at `wr`.
    (0..length).find(|index| ptr::eq(unsafe { at(first, *index) }, wr))
}

/// Undoes the changes of the work requests from `from` on, the last one first. They are not posted.
#[cold]
#[inline(never)]
pub(super) fn undo(first: *mut bindings::ib_send_wr, length: u32, from: u32) {
    for index in (from..length).rev() {
        // SAFETY: By the invariants of `WrList`, the work requests of the list are of these kinds.
        unsafe { Request::undo(at(first, index)) };
    }
}

/// Work requests, and memory for those that are not prepared, and for the memory pieces that these
/// name.
pub(super) struct WrBuffer<'r> {
    pub(super) list: WrList,
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
                list: WrList::EMPTY,
                requests: FixedVec::new(requests, 0),
                pieces: FixedVec::new(pieces, 0),
            }
        }
    }

    /// Appends a work request; `None` if the buffer is full.
    #[inline]
    pub(super) fn push(&mut self, request: Request) -> Option<()> {
        let request = self.requests.push(request)?.as_raw();
        // SAFETY: The buffer is borrowed for `'r`, and has the only access to its requests. A new one
        // has no `next`.
        unsafe { self.list.push(request) };
        Some(())
    }
}
