// SPDX-License-Identifier: GPL-2.0

//! Sector ranges of discards.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    Op,
    Operations,
    Request,
    SECTOR_SIZE, //
};
use crate::bindings;
use core::marker::PhantomData;

/// A range of sectors of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First sector, in units of 512 bytes.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u32,
}

/// Iterator over the ranges of a request; see [`Request::ranges`].
///
/// # Invariants
///
/// `bio` is null or a bio of the request that `'a` borrows.
pub struct Ranges<'a> {
    whole: Option<Range>,
    bio: *const bindings::bio,
    /// Remaining number of ranges that may be returned.
    left: u16,
    _request: PhantomData<&'a ()>,
}

impl<'a> Ranges<'a> {
    /// Creates the iterator: one range per bio if the limits allow several ranges, else one range
    /// for the whole request, which is contiguous.
    fn new<T: Operations>(request: &'a Request<T>) -> Self {
        let rq = request.as_raw();

        // SAFETY: By the invariants of `Request`, `rq` and its queue are valid. `request` is
        // borrowed, so its list of bios does not change. The limits change only while no request is
        // in flight.
        let (bio, max) = unsafe { ((*rq).bio, (*(*rq).q).limits.max_discard_segments) };

        // INVARIANT: `bio` is the first bio of the request, or null.
        if request.op() == Op::Discard && max > 1 {
            Self {
                whole: None,
                bio,
                left: max,
                _request: PhantomData,
            }
        } else {
            Self {
                whole: Some(Range {
                    sector: request.sector(),
                    sectors: request.bytes() / SECTOR_SIZE,
                }),
                bio: core::ptr::null(),
                left: 0,
                _request: PhantomData,
            }
        }
    }
}

impl<T: Operations> Request<T> {
    /// Returns the sector ranges of a discard, or the single range of any other request.
    ///
    /// Returns at most [`max_discard_segments`](super::Limits::max_discard_segments) ranges. A
    /// merged request may have more bios; dropping the rest is correct because a discard is only a
    /// hint.
    #[inline]
    pub fn ranges(&self) -> Ranges<'_> {
        Ranges::new(self)
    }
}

impl Iterator for Ranges<'_> {
    type Item = Range;

    fn next(&mut self) -> Option<Range> {
        if let Some(whole) = self.whole.take() {
            return Some(whole);
        }
        self.left = self.left.checked_sub(1)?;
        if self.bio.is_null() {
            return None;
        }
        // SAFETY: By the type invariants, `bio` belongs to a borrowed request, so it is valid and
        // does not change.
        let (next, iter) = unsafe { ((*self.bio).bi_next, (*self.bio).bi_iter) };

        // INVARIANT: `bi_next` is the next bio of the request, or null.
        self.bio = next;
        Some(Range {
            sector: iter.bi_sector,
            sectors: iter.bi_size / SECTOR_SIZE,
        })
    }
}
