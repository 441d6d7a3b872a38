// SPDX-License-Identifier: GPL-2.0

//! ioctls of disks.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)

use super::{
    fops::DiskFops,
    Operations, //
};
use crate::{
    bindings,
    ioctl::Call,
    sync::{
        Rundown,
        RundownGuard, //
    },
};
use core::{
    marker::PhantomData,
    ops::Deref, //
};
use kernel::{
    error::from_result,
    prelude::*, //
};

/// A call of `ioctl` on a disk, for [`Operations::ioctl`]. Runs in the context of the calling
/// process.
///
/// # Invariants
///
/// `q` is the queue of a `Disk<T>` that exists for `'a`. The disk is not removed while `inside` is
/// held.
pub struct Ioctl<'a, T: Operations> {
    call: Call,
    on_partition: bool,
    for_writing: bool,
    pub(super) q: *mut bindings::request_queue,
    rundown: &'a Rundown,
    inside: RundownGuard<'a>,
    _driver: PhantomData<T>,
}

impl<'a, T: Operations> Ioctl<'a, T> {
    /// Returns whether the process has opened a partition. It may have no access to the whole disk.
    pub fn on_partition(&self) -> bool {
        self.on_partition
    }

    /// Returns whether the process has opened the disk for writing.
    pub fn for_writing(&self) -> bool {
        self.for_writing
    }

    /// Returns the driver data of the disk.
    pub fn data(&self) -> &T::DiskData {
        // SAFETY: By the type invariants, `q` is the queue of a `Disk<T>`, whose data is not
        // dropped while `inside` is held.
        unsafe { &*(*self.q).queuedata.cast() }
    }

    /// Returns the size of the largest transfer of a command to the disk, in bytes.
    pub fn max_transfer(&self) -> usize {
        // SAFETY: By the type invariants, `q` is the queue of a disk that is not removed. C changes the
        // limit in one store.
        let sectors = unsafe { (&raw const (*self.q).limits.max_hw_sectors).read_volatile() };
        super::SECTOR_SIZE.saturating_mul(sectors) as usize
    }

    /// Leaves the disk, so that its removal does not wait for this call any more. For calls that do
    /// not need the disk, or that wait for something that may remove it.
    pub fn leave(self) -> Call {
        self.call
    }

    /// Leaves the disk while `act` runs. For accesses to memory of the process: the process decides
    /// how long these take (userfaultfd, FUSE), and the removal of the disk must not wait for that.
    ///
    /// # Errors
    ///
    /// The error of `act`; `ENODEV` if the disk was removed meanwhile.
    pub fn outside<R>(self, act: impl FnOnce(&Call) -> Result<R>) -> Result<(Self, R)> {
        drop(self.inside);
        let result = act(&self.call)?;
        // `enter` fails once the removal has begun. The queue stays allocated meanwhile, because
        // the disk is open.
        let inside = self.rundown.enter().ok_or(ENODEV)?;
        // INVARIANT: `inside` keeps the disk from being removed, as in `entry`.
        Ok((Self { inside, ..self }, result))
    }
}

impl<T: Operations> Deref for Ioctl<'_, T> {
    type Target = Call;

    fn deref(&self) -> &Call {
        &self.call
    }
}

/// `ioctl` and `compat_ioctl` of the table of operations.
///
/// # Safety
///
/// `bdev` is open and belongs to a [`Disk<T>`](super::Disk): the whole disk or a partition.
pub(super) unsafe extern "C" fn entry<T: Operations>(
    bdev: *mut bindings::block_device,
    mode: bindings::blk_mode_t,
    number: c_uint,
    argument: c_ulong,
) -> c_int {
    // SAFETY: By the safety requirements of this function, `bdev` is valid and its disk has a
    // table. An open disk is not freed.
    let (disk, rundown) = unsafe { ((*bdev).bd_disk, &DiskFops::of((*bdev).bd_disk).rundown) };
    // An open disk may have been removed, or its removal may wait for the rundown.
    let Some(inside) = rundown.enter() else {
        return ENODEV.to_errno();
    };

    // INVARIANT: `Disk::drop` waits for `inside` before it drops any data.
    let call = Ioctl::<T> {
        call: Call::new(number, argument),
        // SAFETY: By the safety requirements of this function, `bdev` is valid.
        on_partition: unsafe { bindings::bdev_is_partition(bdev) },
        for_writing: mode & bindings::rrdma_BLK_OPEN_WRITE != 0,
        // SAFETY: The disk is open, so it and its queue are valid.
        q: unsafe { (*disk).queue },
        rundown,
        inside,
        _driver: PhantomData,
    };
    from_result(|| T::ioctl(call))
}
