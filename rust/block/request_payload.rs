// SPDX-License-Identifier: GPL-2.0

//! Data of a request, as memory that a device accesses.
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
        Direction,
        Scatter,
        ScatterTable, //
    },
};
use core::ptr;
use kernel::prelude::*;

/// A request with its data: the pages of the request, or a separate payload that is transferred
/// instead, such as the list of ranges of a discard.
pub struct RequestPayload<T: Operations> {
    request: Request<T>,
    payload: Option<Buffer>,
}

impl<T: Operations> RequestPayload<T> {
    /// Creates the payload of a request; `None` selects the pages of the request.
    #[inline]
    pub fn new(request: Request<T>, payload: Option<Buffer>) -> Self {
        Self { request, payload }
    }

    /// Returns the request.
    #[inline]
    pub fn request(&self) -> &Request<T> {
        &self.request
    }

    /// Frees the payload and returns the request.
    #[inline]
    pub fn into_request(self) -> Request<T> {
        self.request
    }
}

// SAFETY: The submitter of a request does not free its pages before it is completed, and
// `into_request` consumes `self`. It gives the pages of a read to the device, and lets the device
// read those of a write; `allows` permits nothing else. It may change the pages of a write meanwhile,
// which only affects what the device reads. The other kind of payload is a `Buffer`, which implements
// `Scatter`.
unsafe impl<T: Operations> Scatter for RequestPayload<T> {
    #[inline(always)]
    fn fill(&mut self, table: Pin<&mut ScatterTable>) -> Result {
        match &mut self.payload {
            Some(payload) => payload.fill(table),
            None => list_pages(&self.request, table),
        }
    }

    /// The pages of a write may be read-only, and shared with others: those of a file, or the zero
    /// page. The pages of a read have other data until it completes, which no peer may read.
    #[inline(always)]
    fn allows(&self, direction: Direction) -> bool {
        let of_pages = match self.request.is_write() {
            true => Direction::ToDevice,
            false => Direction::FromDevice,
        };
        // A buffer in place of the pages allows both. Few requests have one, so it comes second.
        direction == of_pages || self.payload.is_some()
    }
}

/// Fills `table` with the pages of a request; leaves it empty if the request has no data. C:
/// `blk_rq_map_sg()`.
#[inline(always)]
fn list_pages<T: Operations>(request: &Request<T>, table: Pin<&mut ScatterTable>) -> Result {
    let raw = request.as_raw();

    let count = match request.has_data() {
        true => request.segments().into(),
        false => 0,
    };
    let list = |sgl| {
        let mut last = ptr::null_mut();

        // SAFETY: `raw` is a valid request that the driver owns. `sgl` has enough entries; see
        // below.
        unsafe { bindings::__blk_rq_map_sg(raw, sgl, &mut last) as u32 }
    };
    // SAFETY: `list` fills at most `segments()` entries, terminates the list, and returns their
    // number.
    unsafe { table.fill_with(count, list) }
}
