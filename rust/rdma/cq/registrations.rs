// SPDX-License-Identifier: GPL-2.0

//! When a region was registered, and so what a peer's invalidation can be of.
//!
//! A region has the same key again after 256 registrations, as only 8 bits of it
//! change. So that a key was invalidated says nothing of a registration that was made
//! later: each is known by its number on the queue pair that it was posted to.

use core::sync::atomic::{
    AtomicU64,
    Ordering, //
};

/// The registrations that a queue pair has been asked for.
pub(crate) struct Registrations {
    /// The serial number of the queue pair.
    queue: u64,
    /// Whether a message that was received is told before all that was posted later:
    /// so it is where sends and receives complete in one queue, of which there is one
    /// poller at a time.
    in_order: bool,
    /// Whether the device looks at which key a peer's message invalidates.
    checked: bool,
    // Of `core`, as it is counted for each request and only Rust accesses it: no call.
    count: AtomicU64,
}

impl Registrations {
    pub(crate) fn new(queue: u64, in_order: bool, checked: bool) -> Self {
        Self {
            queue,
            in_order,
            checked,
            count: AtomicU64::new(0),
        }
    }

    /// The serial number of the queue pair.
    #[inline]
    pub(crate) fn queue(&self) -> u64 {
        self.queue
    }

    /// Whether what a peer invalidates is known to be a registration that there was.
    #[inline]
    pub(in crate::rdma) fn are_checked(&self) -> bool {
        self.checked
    }

    /// One more, which is about to be posted.
    #[inline]
    pub(in crate::rdma) fn begin(&self) -> RegSeq {
        RegSeq {
            queue: self.queue,
            number: self.count.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Those that a message may be about whose completion is being handled.
    #[inline]
    pub(in crate::rdma) fn completed_seq(&self) -> CompletedSeq {
        CompletedSeq {
            queue: self.queue,
            count: match self.in_order {
                true => self.count.load(Ordering::Relaxed),
                false => 0,
            },
        }
    }
}

/// A registration, by its number.
#[derive(Clone, Copy)]
pub(crate) struct RegSeq {
    queue: u64,
    number: u64,
}

impl RegSeq {
    /// None that there was: queue pairs are not counted that far.
    pub(in crate::rdma) const NEVER: Self = Self {
        queue: u64::MAX,
        number: u64::MAX,
    };
}

/// The registrations of a queue pair before some moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletedSeq {
    queue: u64,
    count: u64,
}

impl CompletedSeq {
    #[inline]
    pub(in crate::rdma) fn include(&self, registered: RegSeq) -> bool {
        self.queue == registered.queue && registered.number < self.count
    }
}
