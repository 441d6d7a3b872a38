// SPDX-License-Identifier: GPL-2.0

//! Credits: the free entries of a queue.
//!
//! The device never finds a queue full, because each entry needs a credit.

use core::sync::atomic::{
    AtomicI32,
    Ordering, //
};
use kernel::prelude::*;

/// Credits of a queue: one for each entry that it was created for.
///
/// - Send queue: one for each work request. A device may not report which work requests it took before
///   its queue was full: erdma returns the first one in any case. Each operation changes the counter
///   twice, unless it holds its credits, see [`CreditedMessage`](crate::rdma::wr::CreditedMessage).
/// - Receive queue: one for each receive. A device may round up its queue; the completion queue has entries for
///   the capacity only. A [`RepeatedReceive`](crate::rdma::wr::RepeatedReceive) holds its credit.
/// - Completion queue: those that its queue pairs can fill, see [`CqEntries`](super::cq::CqEntries).
///
/// All threads that use a queue share one counter.
pub(in crate::rdma) struct Credits {
    // From `core`, as only Rust accesses it, and each I/O changes it: no function call. Negative
    // while a thread takes more than there are.
    free: AtomicI32,
    all: u32,
}

impl Credits {
    /// Creates credits for `all` entries.
    pub(super) fn new(all: u32) -> Self {
        Self {
            // A queue has fewer entries than the maximum.
            free: AtomicI32::new(all.try_into().unwrap_or(i32::MAX)),
            all,
        }
    }

    /// Returns whether the queue was created without entries. Any context.
    pub(in crate::rdma) fn is_empty(&self) -> bool {
        self.all == 0
    }

    /// Returns the number of entries.
    pub(in crate::rdma) fn total(&self) -> u32 {
        self.all
    }

    /// Takes credits, not much more than the total: many threads at once must not make the counter overflow.
    /// Any context.
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
