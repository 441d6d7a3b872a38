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

/// A range of sectors of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First sector, in units of 512 bytes.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u32,
}

impl<T: Operations> Request<T> {
    /// Returns the sector ranges of a discard, or the single range of any other request.
    ///
    /// Returns at most [`max_discard_segments`](super::Limits::max_discard_segments) ranges. A
    /// merged request may have more bios; dropping the rest is correct because a discard is only a
    /// hint.
    #[inline]
    pub fn ranges(&self) -> impl Iterator<Item = Range> + '_ {
        let rq = self.as_raw();
        // SAFETY: By the invariants of `Request`, `rq` and its queue are valid. The limits change
        // only while no request is in flight.
        let (mut bio, max) = unsafe { ((*rq).bio, (*(*rq).q).limits.max_discard_segments) };
        // One range per bio if the limits allow several ranges, else one range for the whole
        // request, which is contiguous.
        let by_bio = self.op() == Op::Discard && max > 1;
        let whole = (!by_bio).then(|| Range {
            sector: self.sector(),
            sectors: self.bytes() / SECTOR_SIZE,
        });
        let bios = core::iter::from_fn(move || {
            if bio.is_null() {
                return None;
            }
            // SAFETY: `bio` is a bio of this request. The iterator borrows the request, so its list
            // of bios does not change.
            let (next, iter) = unsafe { ((*bio).bi_next, (*bio).bi_iter) };
            bio = next;
            Some(Range {
                sector: iter.bi_sector,
                sectors: iter.bi_size / SECTOR_SIZE,
            })
        });
        let count = if by_bio { max.into() } else { 0 };
        whole.into_iter().chain(bios.take(count))
    }
}
