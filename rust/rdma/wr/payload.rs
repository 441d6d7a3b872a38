// SPDX-License-Identifier: GPL-2.0

//! What a message or a write consists of.

use super::{
    wr_buffer::FixedVec,
    Sge, //
};
use crate::{
    bindings,
    errno::ENOBUFS,
    rdma::pd::ProtectionDomain, //
};
use kernel::prelude::*;

/// Data to be sent or written: pieces of mapped memory, in order, or [`Inline`] bytes.
pub trait Payload<'a>: sealed::Gather<'a> {}

/// Bytes that go into the request itself (`IB_SEND_INLINE`): they need no mapping,
/// and the device does not fetch them. As many at once as the queue pair was
/// [created for](crate::rdma::qp::QpInitAttr::with_inline).
#[derive(Clone, Copy)]
pub struct Inline<'a>(pub &'a [u8]);

/// A piece, and others behind it: less is done for these than for an iterator that is chained of
/// both.
pub struct SgeThen<'a, I>(pub Sge<'a>, pub I);

impl<'a, I: IntoIterator<Item = Sge<'a>>> Payload<'a> for I {}
impl<'a, I: IntoIterator<Item = Sge<'a>>> Payload<'a> for SgeThen<'a, I> {}
impl<'a> Payload<'a> for Inline<'a> {}

/// Pieces that a chain has gathered for a request.
pub(super) struct SgeList {
    pub(super) sg_list: *mut bindings::ib_sge,
    pub(super) count: usize,
    pub(super) length: u32,
    pub(super) flags: bindings::ib_send_flags,
}

/// Adds pieces of memory to those of a buffer.
pub(super) struct SgeBuilder<'b, 'q> {
    pub(super) pieces: &'b mut FixedVec<'q, bindings::ib_sge>,
    pub(super) domain: &'b ProtectionDomain,
    /// Bytes that a request may hold itself.
    pub(super) inline_bytes: u32,
}

impl SgeBuilder<'_, '_> {
    /// Gathers pieces of memory, each as what `entry` makes of it.
    #[inline]
    pub(super) fn gather<'a>(
        &mut self,
        pieces: impl IntoIterator<Item = Sge<'a>>,
        entry: impl Fn(&Sge<'a>, &ProtectionDomain) -> Result<bindings::ib_sge>,
    ) -> Result<SgeList> {
        let sg_list = self.pieces.next();
        let (mut count, mut length) = (0usize, 0u32);
        for piece in pieces {
            let raw = entry(&piece, self.domain)?;
            length = length.checked_add(raw.length).ok_or(EINVAL)?;
            self.pieces.push(raw).ok_or(ENOBUFS)?;
            // At most as many as there are places.
            count = count.wrapping_add(1);
        }
        Ok(SgeList {
            sg_list,
            count,
            length,
            flags: 0,
        })
    }

    /// Takes bytes as they are.
    #[inline]
    fn gather_inline(&mut self, bytes: &[u8]) -> Result<SgeList> {
        if bytes.is_empty() {
            // A message without data, which soft iWARP refuses as an inline one, and
            // with the fault that [`Chain`](super::Chain) tells of for immediate data.
            return self.gather([], Sge::as_source);
        }
        let length = u32::try_from(bytes.len())?;
        if length > self.inline_bytes {
            return Err(EINVAL);
        }
        let sg_list = self.pieces.next();
        // The device is given the address as the processor knows it, and no key.
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
        // What is gathered next is next to it.
        let others = builder.gather(self.1, Sge::as_source)?;
        Ok(SgeList {
            sg_list: head.sg_list,
            // At most as many as there are places.
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
