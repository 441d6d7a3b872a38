// SPDX-License-Identifier: GPL-2.0

//! Tables of disk operations, which outlive the driver.
//!
//! C headers: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h),
//! [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h)

use crate::{
    bindings,
    sync::Rundown, //
};
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::atomic::{
        ordering,
        Atomic, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// The table of operations of a disk for C, to which the `private_data` of the disk
/// points too; and what lets [`ioctl`](super::ioctl) through.
///
/// An opener of a disk holds the module of the driver by `owner`. The last one to close it
/// lets go of the module first, then of the disk: so if the disk was removed by then, the
/// module may be gone when C looks into the table for `free_disk` and calls it. A table in
/// the memory of the driver, and a function of its code, would be used after that. Hence
/// the table has its own memory, its `free_disk` is of this crate (none of this is generic
/// or inlined, so it is not compiled into the driver), and this crate's module does not
/// exit before [`wait_for_released_disks`]. An `ioctl` is called by an opener, so it may be of
/// the driver.
#[pin_data]
pub(super) struct DiskFops {
    table: bindings::block_device_operations,
    /// Those who call `ioctl` are inside. They have the disk open, so that this stays.
    #[pin]
    pub(super) rundown: Rundown,
}

/// The `ioctl` of a disk for C.
pub(super) type IoctlFn = unsafe extern "C" fn(
    *mut bindings::block_device,
    bindings::blk_mode_t,
    c_uint,
    c_ulong,
) -> c_int;

/// The `ioctl` for 32-bit processes: it makes an address of the argument, and calls the other.
#[cfg(CONFIG_COMPAT)]
const COMPAT_IOCTL: Option<IoctlFn> = Some(bindings::blkdev_compat_ptr_ioctl);
#[cfg(not(CONFIG_COMPAT))]
const COMPAT_IOCTL: Option<IoctlFn> = None;

/// The number of tables.
static TABLES: Atomic<u32> = Atomic::new(0);

impl DiskFops {
    /// Makes the table for a disk of the driver in `module`.
    #[inline(never)]
    pub(super) fn new(module: &'static ThisModule, ioctl: IoctlFn) -> Result<NonNull<Self>> {
        let table = bindings::block_device_operations {
            owner: module.as_ptr(),
            free_disk: Some(free_disk),
            ioctl: Some(ioctl),
            compat_ioctl: COMPAT_IOCTL,
            ..pin_init::zeroed()
        };
        let fops = KBox::pin_init(
            pin_init!(Self { table, rundown <- Rundown::new() }),
            GFP_KERNEL,
        )?;

        TABLES.add(1, ordering::Relaxed);
        // SAFETY: It does not move before `free` has it dropped.
        Ok(NonNull::from(KBox::leak(unsafe {
            Pin::into_inner_unchecked(fops)
        })))
    }

    /// Gives the table to a disk.
    ///
    /// # Safety
    ///
    /// `disk` is valid and was not added yet. If it is, the table is the disk's.
    pub(super) unsafe fn attach(fops: NonNull<Self>, disk: *mut bindings::gendisk) {
        // SAFETY: By the requirements of this function.
        unsafe {
            (*disk).fops = &raw const (*fops.as_ptr()).table;
            (*disk).private_data = fops.as_ptr().cast();
        }
    }

    /// The table of a disk.
    ///
    /// # Safety
    ///
    /// `disk` is valid and has its table from [`DiskFops::attach`], and is not freed for `'a`.
    pub(super) unsafe fn of<'a>(disk: *mut bindings::gendisk) -> &'a Self {
        // SAFETY: By the requirements of this function.
        unsafe { &*(*disk).private_data.cast() }
    }

    /// Frees the table.
    ///
    /// # Safety
    ///
    /// It is from [`DiskFops::new`], and nobody uses it any more.
    #[inline(never)]
    pub(super) unsafe fn free(fops: NonNull<Self>) {
        // SAFETY: By the requirements of this function; `new` leaked a box.
        drop(unsafe { KBox::from_raw(fops.as_ptr()) });
        // Pairs with the load in `wait_for_released_disks`.
        TABLES.fetch_sub(1, ordering::Release);
    }
}

/// Called by C when the last reference to a disk that was added is gone. C does not use the
/// table after.
///
/// # Safety
///
/// `disk` is valid and has its table from [`DiskFops::attach`].
#[inline(never)]
unsafe extern "C" fn free_disk(disk: *mut bindings::gendisk) {
    // SAFETY: By the requirements of this function; this is the last use of the table.
    unsafe {
        DiskFops::free(NonNull::new_unchecked(
            (*disk).private_data.cast::<DiskFops>(),
        ))
    };
}

/// Waits until [`free_disk`] has run for the last disk; it may not have returned.
///
/// For the exit of this crate's module, which waits for that as well: the drivers on it are
/// gone, so what there is left of disks are the last steps of those who closed them. May sleep.
pub(crate) fn wait_for_released_disks() {
    while TABLES.load(ordering::Acquire) != 0 {
        fsleep(Delta::from_millis(1));
    }
}
