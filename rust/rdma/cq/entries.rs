// SPDX-License-Identifier: GPL-2.0

//! Entries of a completion queue that its users have taken, so that none of them can overrun it.

use super::CompletionQueue;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Entries of a completion queue, for the work requests of a queue pair or the receives of a shared receive
/// queue. Dropping this returns them, and the reference to the queue.
pub(in crate::rdma) struct CqEntries {
    cq: Arc<CompletionQueue>,
    count: u32,
}

impl CqEntries {
    /// Takes `count` entries of `cq`. Any context.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if fewer are free; logged.
    pub(in crate::rdma) fn take(cq: &Arc<CompletionQueue>, count: u32) -> Result<Self> {
        let mut this = Self {
            cq: cq.clone(),
            count: 0,
        };
        this.grow(count)?;
        Ok(this)
    }

    /// Takes `more` entries. Any context.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if fewer are free; logged.
    pub(in crate::rdma) fn grow(&mut self, more: u32) -> Result {
        let (cq, device) = (&self.cq, self.cq.device());
        if more > cq.free.total() || cq.free.take(more).is_err() {
            pr_err!(
                "{}: completion queue too small: too few of its {} entries are left for {more} more work requests\n",
                device.name(),
                cq.free.total()
            );
            return Err(ENOSPC);
        }
        self.count = self.count.saturating_add(more);
        Ok(())
    }

    /// Returns `fewer` entries. Any context.
    pub(in crate::rdma) fn shrink(&mut self, fewer: u32) {
        let fewer = fewer.min(self.count);
        self.count = self.count.saturating_sub(fewer);
        self.cq.free.put(fewer);
    }

    /// Returns whether these are entries of `cq`.
    pub(in crate::rdma) fn are_of(&self, cq: &CompletionQueue) -> bool {
        self.cq.as_raw() == cq.as_raw()
    }
}

impl Drop for CqEntries {
    fn drop(&mut self) {
        self.shrink(self.count);
    }
}
