// SPDX-License-Identifier: GPL-2.0

//! Credits of the send queue.

use core::sync::atomic::{
    AtomicU32,
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
/// changes it twice.
pub(in crate::rdma) struct SqCredits {
    // From `core`, as only Rust accesses it, and each I/O changes it: no function call.
    free: AtomicU32,
    all: u32,
}

impl SqCredits {
    /// Creates credits for `all` work requests.
    pub(super) fn new(all: u32) -> Self {
        Self {
            free: AtomicU32::new(all),
            all,
        }
    }

    /// Takes credits. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `credits` exceeds the total.
    /// - `EAGAIN`: too few credits are free now.
    #[inline]
    pub(in crate::rdma) fn take(&self, credits: u32) -> Result {
        let left = |free: u32| free.checked_sub(credits);
        match self
            .free
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, left)
        {
            Ok(_) => Ok(()),
            Err(_) if credits > self.all => Err(EINVAL),
            Err(_) => Err(EAGAIN),
        }
    }

    /// Returns credits. Any context.
    #[inline]
    pub(in crate::rdma) fn put(&self, credits: u32) {
        self.free.fetch_add(credits, Ordering::Release);
    }
}
