// SPDX-License-Identifier: GPL-2.0

//! What a message or a write consists of.

use super::{
    Chain,
    Sge, //
};
use crate::{
    bindings,
    rdma::qp::QpContext, //
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

mod sealed {
    use super::*;

    pub trait Gather<'a>: Sized {
        #[doc(hidden)]
        #[allow(private_interfaces)]
        fn gather<E: QpContext>(self, chain: &mut Chain<'a, '_, E>) -> Result<SgeList>;
    }
}

impl<'a, I: IntoIterator<Item = Sge<'a>>> sealed::Gather<'a> for I {
    #[inline]
    #[allow(private_interfaces)]
    fn gather<E: QpContext>(self, chain: &mut Chain<'a, '_, E>) -> Result<SgeList> {
        chain.gather(self, Sge::as_source)
    }
}

impl<'a, I: IntoIterator<Item = Sge<'a>>> sealed::Gather<'a> for SgeThen<'a, I> {
    #[inline]
    #[allow(private_interfaces)]
    fn gather<E: QpContext>(self, chain: &mut Chain<'a, '_, E>) -> Result<SgeList> {
        let head = chain.gather([self.0], Sge::as_source)?;
        // What is gathered next is next to it.
        let others = chain.gather(self.1, Sge::as_source)?;
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
    fn gather<E: QpContext>(self, chain: &mut Chain<'a, '_, E>) -> Result<SgeList> {
        chain.gather_inline(self.0)
    }
}
