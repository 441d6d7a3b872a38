// SPDX-License-Identifier: GPL-2.0

//! Credits of the send queue.

use super::{
    QpCap,
    RdmaRwCap, //
};
use crate::rdma::device::Device;
use kernel::{
    prelude::*,
    sync::atomic::{
        ordering,
        Atomic, //
    },
};

/// Credits of the send queue for the work requests of [RDMA reads and writes](crate::rdma::rw).
///
/// All threads that use a queue pair share its send queue, so there is one counter. Each read or
/// write changes it twice, in addition to posting its work requests.
pub(in crate::rdma) struct SqCredits {
    free: Atomic<u32>,
    all: u32,
}

impl SqCredits {
    /// Creates a credit for each work request of `cap`; none if there is no `cap`.
    pub(super) fn new(cap: Option<&RdmaRwCap>, device: &Device, capacity: QpCap) -> Self {
        let all = cap.map_or(0, |cap| cap.requests(device, capacity));
        Self {
            free: Atomic::new(all),
            all,
        }
    }

    /// Takes credits. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `credits` exceeds the total.
    /// - `EAGAIN`: too few credits are free now.
    pub(in crate::rdma) fn take(&self, credits: u32) -> Result {
        if credits > self.all {
            return Err(EINVAL);
        }
        let mut free = self.free.load(ordering::Relaxed);
        loop {
            let left = free.checked_sub(credits).ok_or(EAGAIN)?;
            match self.free.cmpxchg(free, left, ordering::Acquire) {
                Ok(_) => return Ok(()),
                Err(now) => free = now,
            }
        }
    }

    /// Returns credits. Any context.
    pub(in crate::rdma) fn put(&self, credits: u32) {
        self.free.fetch_add(credits, ordering::Release);
    }
}
