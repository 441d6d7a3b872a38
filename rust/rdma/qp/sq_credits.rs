// SPDX-License-Identifier: GPL-2.0

//! Credits for the send queue.

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

/// Credits for the requests of the send queue that are for [RDMA reads and writes](crate::rdma::rw).
///
/// All users of a queue pair share its send queue, so this is one counter. A read or write
/// costs two changes of the counter beside its requests.
pub(in crate::rdma) struct SqCredits {
    free: Atomic<u32>,
    all: u32,
}

impl SqCredits {
    /// As many as the requests of `cap`, if there is one.
    pub(super) fn new(cap: Option<&RdmaRwCap>, device: &Device, capacity: QpCap) -> Self {
        let all = cap.map_or(0, |cap| cap.requests(device, capacity));
        Self {
            free: Atomic::new(all),
            all,
        }
    }

    /// Takes credits.
    ///
    /// # Errors
    ///
    /// `EINVAL` for more than there ever are, `EAGAIN` for more than there are now.
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

    /// Gives credits back.
    pub(in crate::rdma) fn put(&self, credits: u32) {
        self.free.fetch_add(credits, ordering::Release);
    }
}
