// SPDX-License-Identifier: GPL-2.0

//! Pools of memory regions.

use super::Region;
use crate::{
    bindings,
    rdma::pd::ProtectionDomain,
    scatter::Scatter, //
};
use core::{
    cell::UnsafeCell,
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::NonNull,
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            AtomicFlag, //
        },
        Arc, //
    },
};

struct PoolEntry<D: Scatter> {
    taken: AtomicFlag,
    region: UnsafeCell<Region<D>>,
}

/// A pool of memory regions, which are taken and returned without allocation, in any context.
///
/// Use a pool for fewer regions than operations. If every operation needs a region, let it own one.
///
/// The core's pool (`ib_mr_pool`) is a list, protected by the queue pair's spinlock. This one has a
/// flag for each region, and processors start to search at different places. So processors do not
/// contend while enough regions are free, and none waits for another.
///
/// A region is not taken again if a peer may still access it when it is returned: its queue pair
/// has failed. It is deregistered with the pool. The last reference to the pool, guards included,
/// must be dropped where it may sleep.
///
/// # Invariants
///
/// The one that changed `taken` of an entry from false to true has exclusive access to its region
/// until it sets `taken` to false.
pub struct Pool<D: Scatter>(KVec<PoolEntry<D>>);

// SAFETY: A region is accessed by one thread at a time, by the type invariant, and is `Send`.
unsafe impl<D: Scatter + Send> Sync for Pool<D> {}

impl<D: Scatter> Pool<D> {
    /// Allocates `count` regions of `pages` pages each. May sleep.
    ///
    /// # Errors
    ///
    /// Those of [`Region::new`].
    pub fn new(pd: &Arc<ProtectionDomain>, count: u32, pages: u32) -> Result<Arc<Self>> {
        let mut entries = KVec::with_capacity(count.try_into()?, GFP_KERNEL)?;
        for _ in 0..count {
            entries.push(
                PoolEntry {
                    taken: AtomicFlag::new(false),
                    region: UnsafeCell::new(Region::new(pd.clone(), pages)?),
                },
                GFP_KERNEL,
            )?;
        }
        // INVARIANT: No entry is taken.
        Ok(Arc::new(Self(entries), GFP_KERNEL)?)
    }

    /// Takes a region; `None` if all are taken. Any context.
    pub fn take(self: &Arc<Self>) -> Option<MrGuard<D>> {
        // SAFETY: The function has no requirements. The processor may change, as the number only
        // selects where the search starts.
        let processor = unsafe { bindings::raw_smp_processor_id() } as usize;
        // Eight starting points spread the processors enough.
        let start = self.0.len().saturating_mul(processor % 8) / 8;
        let (before, after) = self.0.split_at_checked(start)?;
        let free = |entry: &&PoolEntry<D>| !entry.taken.xchg(true, ordering::Acquire);
        let entry = after
            .iter()
            .find(free)
            .or_else(|| before.iter().find(free))?;
        // INVARIANT: `find` changed the flag of this entry from false to true.
        Some(MrGuard {
            entry: NonNull::from(entry),
            _pool: self.clone(),
        })
    }
}

/// A region taken from a [`Pool`]. Dropping it returns the region and drops its data, if any; that
/// must be allowed in the context of the drop.
///
/// # Invariants
///
/// `entry` belongs to the pool, and this guard changed its flag to true.
pub struct MrGuard<D: Scatter> {
    entry: NonNull<PoolEntry<D>>,
    _pool: Arc<Pool<D>>,
}

// SAFETY: The guard has exclusive access to the region, which is `Send`.
unsafe impl<D: Scatter + Send> Send for MrGuard<D> {}

impl<D: Scatter> Deref for MrGuard<D> {
    type Target = Region<D>;

    #[inline]
    fn deref(&self) -> &Region<D> {
        // SAFETY: By the type invariants the guard has access to the region. It keeps the pool
        // alive.
        unsafe { &*self.entry.as_ref().region.get() }
    }
}

impl<D: Scatter> DerefMut for MrGuard<D> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Region<D> {
        // SAFETY: By the type invariants the guard has exclusive access to the region, and
        // `&mut self` makes this the only borrow. It keeps the pool alive.
        unsafe { &mut *self.entry.as_ref().region.get() }
    }
}

impl<D: Scatter> Drop for MrGuard<D> {
    fn drop(&mut self) {
        if self.peer_may_access() {
            return;
        }
        drop(self.release());
        // SAFETY: By the type invariants `entry` belongs to the pool, which the guard keeps alive.
        let entry = unsafe { self.entry.as_ref() };
        // INVARIANT: The guard does not access the region after this.
        entry.taken.store(false, ordering::Release);
    }
}
