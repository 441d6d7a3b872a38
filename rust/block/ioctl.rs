// SPDX-License-Identifier: GPL-2.0

//! What a process asks of a disk.
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

/// A call of `ioctl` on a disk, for [`Operations::ioctl`]. It runs in the process that made it.
///
/// # Invariants
///
/// `q` is the queue of a `Disk<T>` that is not gone for `'a`.
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
    /// Whether the process may have opened no more than a partition of the disk.
    pub fn on_partition(&self) -> bool {
        self.on_partition
    }

    /// Whether the process has opened it to write to it.
    pub fn for_writing(&self) -> bool {
        self.for_writing
    }

    /// The data of the driver.
    pub fn data(&self) -> &T::DiskData {
        // SAFETY: By the invariants; it goes with the disk.
        unsafe { &*(*self.q).queuedata.cast() }
    }

    /// Leaves the disk, which may go from here on: it does not wait for this call any more. For
    /// calls that are not about the disk, or wait for what may remove it.
    pub fn leave(self) -> Call {
        self.call
    }

    /// Leaves the disk for as long as `act` takes, which may wait for memory of the process: that
    /// can make who reads it wait as it likes.
    ///
    /// # Errors
    ///
    /// Those of `act`; `ENODEV` if the disk is gone meanwhile.
    pub fn outside<R>(self, act: impl FnOnce(&Call) -> Result<R>) -> Result<(Self, R)> {
        drop(self.inside);
        let result = act(&self.call)?;
        // It is gone only when nobody is inside, and then nobody comes in. C keeps `q`, as the disk
        // is open.
        let inside = self.rundown.enter().ok_or(ENODEV)?;
        // INVARIANT: As in `entry`.
        Ok((Self { inside, ..self }, result))
    }
}

impl<T: Operations> Deref for Ioctl<'_, T> {
    type Target = Call;

    fn deref(&self) -> &Call {
        &self.call
    }
}

/// The entry of the table for C.
///
/// # Safety
///
/// `bdev` is that of a disk of a [`Disk<T>`](super::Disk), or of a partition of it, and is open.
pub(super) unsafe extern "C" fn entry<T: Operations>(
    bdev: *mut bindings::block_device,
    mode: bindings::blk_mode_t,
    number: c_uint,
    argument: c_ulong,
) -> c_int {
    // SAFETY: By the requirements of this function. An open disk is not freed.
    let (disk, rundown) = unsafe { ((*bdev).bd_disk, &DiskFops::of((*bdev).bd_disk).rundown) };
    // Open as it is, the disk may have been removed, and is being so perhaps: that waits for
    // those who are inside.
    let Some(inside) = rundown.enter() else {
        return ENODEV.to_errno();
    };

    // INVARIANT: `Disk::drop` goes no further than to wait for us as long as `inside` is there.
    let call = Ioctl::<T> {
        call: Call::new(number, argument),
        // SAFETY: By the requirements of this function.
        on_partition: unsafe { bindings::bdev_is_partition(bdev) },
        for_writing: mode & bindings::rrdma_BLK_OPEN_WRITE != 0,
        // SAFETY: As above.
        q: unsafe { (*disk).queue },
        rundown,
        inside,
        _driver: PhantomData,
    };
    from_result(|| T::ioctl(call))
}
