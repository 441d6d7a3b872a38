// SPDX-License-Identifier: GPL-2.0

//! A request as data that a device takes.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    Operations,
    Request, //
};
use crate::{
    bindings,
    scatter::{
        Buffer,
        Scatter,
        ScatterTable, //
    },
};
use core::ptr;
use kernel::prelude::*;

/// A request as a memory region takes it: with its own pages, or
/// with a payload that stands for them on the wire, such as the list of ranges
/// of a discard.
pub struct RequestPayload<T: Operations> {
    request: Request<T>,
    payload: Option<Buffer>,
}

impl<T: Operations> RequestPayload<T> {
    /// A request that is carried with its own pages, if `payload` is `None`.
    #[inline]
    pub fn new(request: Request<T>, payload: Option<Buffer>) -> Self {
        Self { request, payload }
    }

    /// The request.
    #[inline]
    pub fn request(&self) -> &Request<T> {
        &self.request
    }

    /// The request, to be ended; the payload is freed.
    #[inline]
    pub fn into_request(self) -> Request<T> {
        self.request
    }
}

// SAFETY: The pages of a request are the block layer's, which leaves them alone
// until the request is ended, for which the payload has to be taken apart; a
// payload is a `Buffer`.
unsafe impl<T: Operations> Scatter for RequestPayload<T> {
    #[inline(always)]
    fn fill(&mut self, table: Pin<&mut ScatterTable>) -> Result {
        match &mut self.payload {
            Some(payload) => payload.fill(table),
            None => list_pages(&self.request, table),
        }
    }
}

/// Lists the pages of a request; none if it has no data. C: `blk_rq_map_sg`.
#[inline(always)]
fn list_pages<T: Operations>(request: &Request<T>, table: Pin<&mut ScatterTable>) -> Result {
    let raw = request.as_raw();

    let count = match request.has_data() {
        true => request.segments().into(),
        false => 0,
    };
    let list = |sgl| {
        let mut last = ptr::null_mut();

        // SAFETY: The driver's request is valid. C counts what it fills in from 0 up.
        unsafe { bindings::__blk_rq_map_sg(raw, sgl, &mut last) as u32 }
    };
    // SAFETY: The list has room for as many entries as the request has at most. C ends it.
    unsafe { table.fill_with(count, list) }
}
