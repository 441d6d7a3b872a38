// SPDX-License-Identifier: GPL-2.0

//! Number and kinds of hardware queues.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h), `enum hctx_type`

use crate::bindings;
use core::fmt;

/// Kinds of hardware queues that a tag set may have. The value is the number of its queue maps
/// (`nr_maps`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKinds {
    /// One kind for all requests. The number of queues is limited to that of the CPUs.
    Default = 1,
    /// Also queues for reads.
    Read = 2,
    /// Also queues for reads and for polled requests.
    Poll = 3,
}

/// Number of hardware queues of each kind.
///
/// Queue indices are in the order of the fields. The queues of each kind are spread over all CPUs
/// by `blk_mq_map_queues()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Queues for all requests that have no other kind of queue: at least 1.
    pub default: u32,
    /// Queues for reads; if 0, reads use the default queues.
    pub read: u32,
    /// Queues for polled requests, see [`poll`](super::Operations::poll); 0 disables polling.
    pub poll: u32,
}

impl QueueCounts {
    /// Returns the total; `None` if these counts are invalid for `kinds`.
    pub(super) fn total(self, kinds: QueueKinds) -> Option<u32> {
        let possible = self.default > 0
            && (self.read == 0 || kinds != QueueKinds::Default)
            && (self.poll == 0 || kinds == QueueKinds::Poll);

        let total = self.default.checked_add(self.read)?;
        let total = total.checked_add(self.poll)?;
        (possible && i32::try_from(total).is_ok()).then_some(total)
    }

    /// Returns whether hardware queue `index` is for polled requests.
    pub fn is_polled(self, index: u32) -> bool {
        let first = self.default.saturating_add(self.read);

        (first..first.saturating_add(self.poll)).contains(&index)
    }

    /// Sets the maps from CPUs to hardware queues.
    ///
    /// # Safety
    ///
    /// The maps of `set` are allocated, also those of every kind with a count above 0. Nobody else
    /// uses them.
    pub(super) unsafe fn map(self, set: *mut bindings::blk_mq_tag_set) {
        let mut offset = 0;

        // SAFETY: By the safety requirements of this function, `set` is valid and its maps are
        // unused.
        let maps = unsafe { (*set).map.iter_mut() };
        for (map, count) in maps.zip([self.default, self.read, self.poll]) {
            map.nr_queues = count;
            map.queue_offset = offset;
            offset = u32::saturating_add(offset, count);
            // For an empty map, C uses the default one.
            if count > 0 {
                // SAFETY: By the safety requirements of this function, the map is allocated.
                unsafe { bindings::blk_mq_map_queues(map) };
            }
        }
    }
}

impl fmt::Display for QueueCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            default,
            read,
            poll,
        } = self;

        write!(f, "{default}/{read}/{poll} default/read/poll queues")
    }
}
