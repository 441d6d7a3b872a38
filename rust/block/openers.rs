// SPDX-License-Identifier: GPL-2.0

//! Counts of the opens of disks.
//!
//! C headers: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    },
};

/// Opens of a group of disks, such as those of a controller. A driver that removes only disks that
/// nobody has open first [refuses](Self::refuse_unless_open) later opens.
///
/// The block layer opens a disk for each open of the disk or of a partition: by a process, a file
/// system, the device mapper, swap or a loop device. So the count covers all of them, in whatever
/// mount namespace they are.
pub struct Openers(Atomic<u32>);

/// Value of the counter when opens are refused.
const REFUSED: u32 = u32::MAX;

impl Openers {
    /// Creates a group whose disks may be opened. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new() -> Result<Arc<Self>> {
        Ok(Arc::new(Self(Atomic::new(0)), GFP_KERNEL)?)
    }

    /// Refuses all later opens of the disks, finally, unless one of them is open. Returns whether they
    /// are refused. Any context.
    ///
    /// The check and the refusal are one atomic step: an open either comes before and is counted, or
    /// fails with `ENXIO`, as for a disk that is removed.
    pub fn refuse_unless_open(&self) -> bool {
        match self.0.cmpxchg(0, REFUSED, ordering::Relaxed) {
            Ok(_) => true,
            Err(now) => now == REFUSED,
        }
    }

    /// Counts an open.
    ///
    /// # Errors
    ///
    /// - `ENXIO` if opens are refused.
    /// - `ENFILE` if there are too many.
    fn open(&self) -> Result {
        let mut now = self.0.load(ordering::Relaxed);
        loop {
            if now == REFUSED {
                return Err(ENXIO);
            }
            let next = now.saturating_add(1);
            if next == REFUSED {
                return Err(ENFILE);
            }
            match self.0.cmpxchg(now, next, ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => now = other,
            }
        }
    }

    /// Ends `count` opens. They were counted, so the counter is not [`REFUSED`].
    fn close(&self, count: u32) {
        self.0.fetch_sub(count, ordering::Relaxed);
    }
}

/// The part of a disk in [`Openers`].
///
/// # Invariants
///
/// The group counts `own` opens of this disk; none if `own` is [`FORGOTTEN`].
pub(super) struct DiskOpens {
    group: Arc<Openers>,
    own: Atomic<u32>,
}

/// Value of a disk's own count when its opens do not count any more.
const FORGOTTEN: u32 = u32::MAX;

impl DiskOpens {
    /// Returns the part of a disk that is not open.
    pub(super) fn new(group: Arc<Openers>) -> Self {
        // INVARIANT: The group counts no opens of the disk.
        Self {
            group,
            own: Atomic::new(0),
        }
    }

    /// Counts an open; errors are those of [`Openers::open`]. Not called after [`forget`](Self::forget).
    pub(super) fn open(&self) -> Result {
        self.group.open()?;
        // INVARIANT: The group has counted it. `own` is no more than the group's count, so this does
        // not reach `FORGOTTEN`.
        self.own.add(1, ordering::Relaxed);
        Ok(())
    }

    /// Ends an open.
    pub(super) fn close(&self) {
        let mut now = self.own.load(ordering::Relaxed);
        while now != FORGOTTEN {
            match self
                .own
                .cmpxchg(now, now.saturating_sub(1), ordering::Relaxed)
            {
                // INVARIANT: Both are one less.
                Ok(_) => return self.group.close(1),
                Err(other) => now = other,
            }
        }
    }

    /// Lets the opens of the disk count no more, because it is removed. It is opened no more, but those
    /// who have it open may keep it for long.
    pub(super) fn forget(&self) {
        // INVARIANT: The group is told to count none of them.
        match self.own.xchg(FORGOTTEN, ordering::Relaxed) {
            FORGOTTEN => (),
            own => self.group.close(own),
        }
    }
}

/// How a disk or its partitions are open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DiskUse {
    /// Not at all.
    Closed,
    /// By a process or a loop device, for example.
    Open,
    /// Exclusively (`O_EXCL`), as by a file system, swap, the device mapper or RAID.
    Claimed,
}
