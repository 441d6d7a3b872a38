// SPDX-License-Identifier: GPL-2.0

//! The ranges of a discard.
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

/// A run of sectors of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first sector, of 512 bytes.
    pub sector: u64,
    /// How many.
    pub sectors: u32,
}

/// The ranges of a request; see [`Request::ranges`].
///
/// # Invariants
///
/// `bio` is null or a bio of the request that `'a` borrows.
pub struct Ranges<'a> {
    whole: Option<Range>,
    bio: *const bindings::bio,
    /// So many more may follow.
    left: u16,
    _request: PhantomData<&'a ()>,
}

impl<'a> Ranges<'a> {
    /// The ranges of a request: one a bio where a request may have several, else the
    /// whole, which is one run however many bios it is made of.
    fn new<T: Operations>(request: &'a Request<T>) -> Self {
        let rq = request.as_raw();

        // SAFETY: By the invariants of `Request`, `rq` and its queue are valid, and
        // while we borrow it nobody else changes its list of bios. The limits change
        // only while no request is under way.
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
    /// The runs of sectors that a discard is about.
    ///
    /// At most [`max_discard_segments`](super::Limits::max_discard_segments) of them: a request
    /// that the block layer merged from others may have more, and a discard is only a hint. For
    /// any other operation it is the one that it is about.
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
        // SAFETY: By the invariant it is a bio of a request that is borrowed, so it is
        // valid and nobody changes it.
        let (next, iter) = unsafe { ((*self.bio).bi_next, (*self.bio).bi_iter) };

        // INVARIANT: The bios of a request are linked by `bi_next`, up to null.
        self.bio = next;
        Some(Range {
            sector: iter.bi_sector,
            sectors: iter.bi_size / SECTOR_SIZE,
        })
    }
}
