// SPDX-License-Identifier: GPL-2.0

//! Order of registrations and invalidations on a queue pair.
//!
//! Only 8 bits of a key change, so a region has the same key again after 256 registrations. A
//! message that invalidated a key proves nothing about a later registration with the same key. So
//! each registration has a number on the queue pair that it was posted to.

use core::sync::atomic::{
    AtomicU64,
    Ordering, //
};

/// Counts the registrations posted to a queue pair.
pub(crate) struct Registrations {
    /// Serial number of the queue pair.
    queue: u64,
    /// Whether a received message is handled before the completions of all work requests that were
    /// posted after it arrived. True if sends and receives complete in one queue, which has one
    /// poller at a time.
    in_order: bool,
    /// Whether the device checks the whole key that a peer's message invalidates.
    checked: bool,
    // From `core`, as only Rust accesses it, and it is incremented for every I/O: no function call.
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

    /// Returns the serial number of the queue pair.
    #[inline]
    pub(crate) fn queue(&self) -> u64 {
        self.queue
    }

    /// Returns whether an invalidated key is known to be that of an earlier registration.
    #[inline]
    pub(in crate::rdma) fn are_checked(&self) -> bool {
        self.checked
    }

    /// Counts a registration that is about to be posted, and returns its number.
    #[inline]
    pub(in crate::rdma) fn begin(&self) -> RegSeq {
        RegSeq {
            queue: self.queue,
            number: self.count.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Returns the registrations that the message being handled may have invalidated.
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

/// Number of a registration on its queue pair.
#[derive(Clone, Copy)]
pub(crate) struct RegSeq {
    queue: u64,
    number: u64,
}

impl RegSeq {
    /// Number of no registration: serial numbers of queue pairs do not reach this value.
    pub(in crate::rdma) const NEVER: Self = Self {
        queue: u64::MAX,
        number: u64::MAX,
    };

    /// Returns this number with the queue pair of `before`, which is the same one. The compiler then finds
    /// that only the number changes.
    #[inline(always)]
    pub(in crate::rdma) fn after(self, before: Self) -> Self {
        Self {
            queue: before.queue,
            number: self.number,
        }
    }

    /// Returns whether this is the number of no registration.
    pub(in crate::rdma) fn is_never(self) -> bool {
        self.queue == Self::NEVER.queue
    }

    /// Returns whether both registrations are on one queue pair.
    #[inline]
    pub(in crate::rdma) fn is_on_queue_of(self, other: Self) -> bool {
        self.queue == other.queue
    }
}

/// All registrations on a queue pair before a point in time.
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
