// SPDX-License-Identifier: GPL-2.0

//! What the hardware queues of a tag set are for.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h), `enum hctx_type`

use crate::bindings;
use core::fmt;

/// Which kinds of hardware queues a tag set may ever have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKinds {
    /// One, for all requests. There are never more queues than CPUs.
    Default,
    /// Also for reads.
    Read,
    /// Also for polled requests.
    Poll,
}

impl QueueKinds {
    /// The number of maps that C needs.
    pub(super) fn maps(self) -> u32 {
        match self {
            Self::Default => 1,
            Self::Read => 2,
            Self::Poll => 3,
        }
    }
}

/// How many hardware queues there are for what.
///
/// By their index they come in the order of the fields. Those of each kind are spread over
/// all CPUs, each kind for itself (`blk_mq_map_queues`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// For all that the others are not for: at least one.
    pub default: u32,
    /// Only for reads; if 0, reads use the first kind.
    pub read: u32,
    /// Only for requests that somebody polls for ([`poll`](super::Operations::poll)); if 0,
    /// there are no such requests.
    pub poll: u32,
}

impl QueueCounts {
    /// How many they are in all; `None` if there cannot be such queues.
    pub(super) fn total(self, kinds: QueueKinds) -> Option<u32> {
        let possible = self.default > 0
            && (self.read == 0 || kinds != QueueKinds::Default)
            && (self.poll == 0 || kinds == QueueKinds::Poll);

        let total = self.default.checked_add(self.read)?;
        let total = total.checked_add(self.poll)?;
        (possible && i32::try_from(total).is_ok()).then_some(total)
    }

    /// Whether the hardware queue `index` is for polled requests.
    pub fn is_polled(self, index: u32) -> bool {
        let first = self.default.saturating_add(self.read);

        (first..first.saturating_add(self.poll)).contains(&index)
    }

    /// Writes who uses which queue into C's maps.
    ///
    /// # Safety
    ///
    /// The maps of `set` are allocated, and nobody else uses them; there are those of all
    /// kinds that there are queues of.
    pub(super) unsafe fn map(self, set: *mut bindings::blk_mq_tag_set) {
        let mut offset = 0;

        // SAFETY: By the requirements of this function.
        let maps = unsafe { (*set).map.iter_mut() };
        for (map, count) in maps.zip([self.default, self.read, self.poll]) {
            map.nr_queues = count;
            map.queue_offset = offset;
            offset = u32::saturating_add(offset, count);
            // C uses the first map where there are no queues.
            if count > 0 {
                // SAFETY: By the requirements of this function the map is allocated.
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
