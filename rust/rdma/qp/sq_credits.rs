// SPDX-License-Identifier: GPL-2.0

//! Credits of the send queue.

use core::sync::atomic::{
    AtomicI32,
    Ordering, //
};
use kernel::prelude::*;

/// Credits of the send queue: one for each work request that it was created for.
///
/// The device never finds its queue full, because each work request needs a credit. That matters
/// on a device that does not report which work requests it took before its queue was full: erdma
/// returns the first one in any case.
///
/// All threads that use a queue pair share its send queue, so there is one counter. Each operation
/// changes it twice, unless it holds its credits, see
/// [`CreditedMessage`](crate::rdma::wr::CreditedMessage).
pub(in crate::rdma) struct SqCredits {
    // From `core`, as only Rust accesses it, and each I/O changes it: no function call. Negative
    // while a thread takes more than there are.
    free: AtomicI32,
    all: u32,
}

impl SqCredits {
    /// Creates credits for `all` work requests.
    pub(super) fn new(all: u32) -> Self {
        Self {
            // A send queue has fewer entries than the maximum.
            free: AtomicI32::new(all.try_into().unwrap_or(i32::MAX)),
            all,
        }
    }

    /// Returns whether the send queue was created without credits. Any context.
    pub(in crate::rdma) fn is_empty(&self) -> bool {
        self.all == 0
    }

    /// Takes credits. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `credits` exceeds the total.
    /// - `EAGAIN`: too few credits are free now.
    #[inline]
    pub(in crate::rdma) fn take(&self, credits: u32) -> Result {
        let before = self.free.fetch_sub(credits as i32, Ordering::Acquire);
        // In this form it is a test of the sign that the subtraction leaves.
        match before.wrapping_sub(credits as i32) >= 0 {
            true => Ok(()),
            false => Err(self.refuse(credits)),
        }
    }

    /// Returns credits that were taken though there are too few, and the error.
    #[cold]
    fn refuse(&self, credits: u32) -> Error {
        self.put(credits);
        match credits > self.all {
            true => EINVAL,
            false => EAGAIN,
        }
    }

    /// Returns credits. Any context.
    #[inline]
    pub(in crate::rdma) fn put(&self, credits: u32) {
        self.free.fetch_add(credits as i32, Ordering::Release);
    }
}
