// SPDX-License-Identifier: GPL-2.0

//! Entries of completion queues that a queue pair has taken, also for the receives of a shared receive queue.

use crate::{
    bindings,
    rdma::{
        cq::{
            CompletionQueue,
            CqEntries, //
        },
        pd::ProtectionDomain, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A shared receive queue, without the type of its queue pairs' context.
pub(in crate::rdma) trait Srq: Send + Sync {
    /// Returns the C object.
    fn as_raw(&self) -> *mut bindings::ib_srq;

    /// Returns the protection domain of the receives.
    fn protection_domain(&self) -> &Arc<ProtectionDomain>;

    /// Takes entries of `cq` for all receives of the queue, unless another queue pair has done so. A queue
    /// pair that takes its receives from the queue calls this before it is created. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if `cq` has too few entries; `ENOMEM`.
    fn take_entries(&self, cq: &Arc<CompletionQueue>) -> Result;

    /// Returns the entries of `cq` with the last queue pair that has called
    /// [`take_entries`](Self::take_entries) for it. May sleep.
    fn put_entries(&self, cq: &CompletionQueue);
}

/// The entries of its completion queues that a queue pair can fill. Dropping this returns them, which may
/// sleep.
pub(super) struct QpCqEntries {
    _sends: CqEntries,
    _receives: ReceiveEntries,
}

impl QpCqEntries {
    pub(super) fn new(sends: CqEntries, receives: ReceiveEntries) -> Self {
        Self {
            _sends: sends,
            _receives: receives,
        }
    }
}

/// Entries for the completions of receives.
pub(super) enum ReceiveEntries {
    /// Of receives of the queue pair's own.
    Own { _entries: CqEntries },
    /// Of the receives of a shared queue.
    Shared { _entries: SharedEntries },
}

impl ReceiveEntries {
    /// Takes `entries` entries of `cq`. Any context.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if `cq` has too few.
    pub(super) fn own(cq: &Arc<CompletionQueue>, entries: u32) -> Result<Self> {
        let _entries = CqEntries::take(cq, entries)?;
        Ok(Self::Own { _entries })
    }

    /// Takes an entry of `cq` for each receive of `srq`. Queue pairs with the same two queues share them.
    /// May sleep.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if `cq` has too few; `ENOMEM`.
    pub(super) fn shared(srq: &Arc<dyn Srq>, cq: &Arc<CompletionQueue>) -> Result<Self> {
        srq.take_entries(cq)?;
        let _entries = SharedEntries {
            srq: srq.clone(),
            cq: cq.clone(),
        };
        Ok(Self::Shared { _entries })
    }
}

/// The use of a completion queue by a shared receive queue.
pub(super) struct SharedEntries {
    srq: Arc<dyn Srq>,
    cq: Arc<CompletionQueue>,
}

impl Drop for SharedEntries {
    fn drop(&mut self) {
        self.srq.put_entries(&self.cq);
    }
}
