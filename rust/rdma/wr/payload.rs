// SPDX-License-Identifier: GPL-2.0

//! Payload of messages and RDMA writes.

use super::{
    wr_buffer::FixedVec,
    Sge, //
};
use crate::{
    bindings,
    errno::ENOBUFS,
    rdma::pd::LocalMemory, //
};
use kernel::prelude::*;

/// Data to send or write: mapped memory pieces, in order, or [`Inline`] bytes.
pub trait Payload<'a>: sealed::Gather<'a> {}

/// Bytes that are copied into the work request (`IB_SEND_INLINE`), so that they need no mapping. At
/// most as many as the queue pair was [created for](crate::rdma::qp::QpInitAttr::with_inline).
#[derive(Clone, Copy)]
pub struct Inline<'a>(pub &'a [u8]);

/// One memory piece, followed by more. Generates less code than a chained iterator.
pub struct SgeThen<'a, I>(pub Sge<'a>, pub I);

impl<'a, I: IntoIterator<Item = Sge<'a>>> Payload<'a> for I {}
impl<'a, I: IntoIterator<Item = Sge<'a>>> Payload<'a> for SgeThen<'a, I> {}
impl<'a> Payload<'a> for Inline<'a> {}

/// Memory pieces of one work request.
pub(super) struct SgeList {
    pub(super) sg_list: *mut bindings::ib_sge,
    pub(super) count: usize,
    pub(super) length: u32,
    pub(super) flags: bindings::ib_send_flags,
}

/// Appends memory pieces to a buffer.
pub(super) struct SgeBuilder<'b, 'q> {
    pub(super) pieces: &'b mut FixedVec<'q, bindings::ib_sge>,
    pub(super) memory: LocalMemory,
    /// Maximum number of inline bytes of a work request.
    pub(super) inline_bytes: u32,
}

impl SgeBuilder<'_, '_> {
    /// Appends `pieces`, each converted by `entry`.
    #[inline]
    pub(super) fn gather<'a>(
        &mut self,
        pieces: impl IntoIterator<Item = Sge<'a>>,
        entry: impl Fn(&Sge<'a>, LocalMemory) -> Result<bindings::ib_sge>,
    ) -> Result<SgeList> {
        let sg_list = self.pieces.next();
        let (mut count, mut length) = (0usize, 0u32);
        for piece in pieces {
            let raw = entry(&piece, self.memory)?;
            length = length.checked_add(raw.length).ok_or(EINVAL)?;
            self.pieces.push(raw).ok_or(ENOBUFS)?;
            // Does not overflow: `pieces` has room for at least `count` entries.
            count = count.wrapping_add(1);
        }
        Ok(SgeList {
            sg_list,
            count,
            length,
            flags: 0,
        })
    }

    /// Appends `bytes` as inline data.
    #[inline]
    fn gather_inline(&mut self, bytes: &[u8]) -> Result<SgeList> {
        if bytes.is_empty() {
            // A message without data is not inline. Soft-iWARP refuses an empty inline message, but
            // keeps it and completes it later, as it does with immediate data (see
            // `Chain::check_immediate`).
            return self.gather([], Sge::as_source);
        }
        let length = u32::try_from(bytes.len())?;
        if length > self.inline_bytes {
            return Err(EINVAL);
        }
        let sg_list = self.pieces.next();
        // For inline data, the device takes a virtual address and ignores the key.
        let piece = bindings::ib_sge {
            addr: bytes.as_ptr() as u64,
            length,
            lkey: 0,
        };
        self.pieces.push(piece).ok_or(ENOBUFS)?;
        Ok(SgeList {
            sg_list,
            count: 1,
            length,
            flags: bindings::ib_send_flags_IB_SEND_INLINE,
        })
    }
}

mod sealed {
    use super::*;

    pub trait Gather<'a>: Sized {
        #[doc(hidden)]
        #[allow(private_interfaces)]
        fn gather(self, builder: &mut SgeBuilder<'_, '_>) -> Result<SgeList>;
    }
}

impl<'a, I: IntoIterator<Item = Sge<'a>>> sealed::Gather<'a> for I {
    #[inline]
    #[allow(private_interfaces)]
    fn gather(self, builder: &mut SgeBuilder<'_, '_>) -> Result<SgeList> {
        builder.gather(self, Sge::as_source)
    }
}

impl<'a, I: IntoIterator<Item = Sge<'a>>> sealed::Gather<'a> for SgeThen<'a, I> {
    #[inline]
    #[allow(private_interfaces)]
    fn gather(self, builder: &mut SgeBuilder<'_, '_>) -> Result<SgeList> {
        let head = builder.gather([self.0], Sge::as_source)?;
        // The others directly follow the first one in the buffer.
        let others = builder.gather(self.1, Sge::as_source)?;
        Ok(SgeList {
            sg_list: head.sg_list,
            // Does not overflow: `pieces` has room for at least this many entries.
            count: head.count.wrapping_add(others.count),
            length: head.length.checked_add(others.length).ok_or(EINVAL)?,
            flags: 0,
        })
    }
}

impl<'a> sealed::Gather<'a> for Inline<'a> {
    #[inline]
    #[allow(private_interfaces)]
    fn gather(self, builder: &mut SgeBuilder<'_, '_>) -> Result<SgeList> {
        builder.gather_inline(self.0)
    }
}
