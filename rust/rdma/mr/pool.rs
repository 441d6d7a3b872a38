// SPDX-License-Identifier: GPL-2.0

//! Regions that many operations share.

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

/// Regions that are taken and given back, without allocation, in any context.
///
/// Where every operation needs a region, give it one of its own. A pool is for fewer
/// regions than operations. The core's (`ib_mr_pool`) is a list under the queue
/// pair's spinlock; this one has a flag for each region, and who takes one looks at
/// the flags from a place that depends on the processor. So processors that have
/// regions enough do not meet, and nobody waits for anybody.
///
/// A region that a peer may still reach when it is given back is not taken again: its
/// queue pair has failed. It is freed with the pool, of which the last reference,
/// guards included, must be dropped where one may sleep.
///
/// # Invariants
///
/// Whoever changed `taken` of an entry from false to true has exclusive access to its
/// region, until it is false again.
pub struct Pool<D: Scatter>(KVec<PoolEntry<D>>);

// SAFETY: Access to a region is handed from one thread to another, never shared.
unsafe impl<D: Scatter + Send> Sync for Pool<D> {}

impl<D: Scatter> Pool<D> {
    /// Allocates `count` regions of `pages` pages each. May sleep.
    ///
    /// # Errors
    ///
    /// As [`Region::new`].
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
        // INVARIANT: Nobody has taken any.
        Ok(Arc::new(Self(entries), GFP_KERNEL)?)
    }

    /// Takes a region; `None` if all are taken. Any context.
    pub fn take(self: &Arc<Self>) -> Option<MrGuard<D>> {
        // SAFETY: Any processor will do.
        let processor = unsafe { bindings::raw_smp_processor_id() } as usize;
        // To spread them over eighths of the pool is enough.
        let start = self.0.len().saturating_mul(processor % 8) / 8;
        let (before, after) = self.0.split_at_checked(start)?;
        let free = |entry: &&PoolEntry<D>| !entry.taken.xchg(true, ordering::Acquire);
        let entry = after
            .iter()
            .find(free)
            .or_else(|| before.iter().find(free))?;
        // INVARIANT: The flag was changed from false above.
        Some(MrGuard {
            entry: NonNull::from(entry),
            _pool: self.clone(),
        })
    }
}

/// A region that was taken from a [`Pool`], and goes back to it when dropped. Its data,
/// if it has any, is then dropped, too, which says in which context that may be.
///
/// # Invariants
///
/// `entry` is one of the pool's, and we have changed its flag to true.
pub struct MrGuard<D: Scatter> {
    entry: NonNull<PoolEntry<D>>,
    _pool: Arc<Pool<D>>,
}

// SAFETY: The guard is exclusive access to a region, which may be sent.
unsafe impl<D: Scatter + Send> Send for MrGuard<D> {}

impl<D: Scatter> Deref for MrGuard<D> {
    type Target = Region<D>;

    #[inline]
    fn deref(&self) -> &Region<D> {
        // SAFETY: By the type invariants; the pool is kept.
        unsafe { &*self.entry.as_ref().region.get() }
    }
}

impl<D: Scatter> DerefMut for MrGuard<D> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Region<D> {
        // SAFETY: As above.
        unsafe { &mut *self.entry.as_ref().region.get() }
    }
}

impl<D: Scatter> Drop for MrGuard<D> {
    fn drop(&mut self) {
        if self.is_valid() {
            return;
        }
        drop(self.release());
        // SAFETY: By the type invariants.
        let entry = unsafe { self.entry.as_ref() };
        // INVARIANT: Our access ends here.
        entry.taken.store(false, ordering::Release);
    }
}
