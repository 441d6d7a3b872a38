// SPDX-License-Identifier: GPL-2.0

//! Tables of block device operations. They outlive the driver.
//!
//! C headers: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h),
//! [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h)

use super::openers::{
    DiskOpens,
    Openers, //
};
use crate::{
    bindings,
    sync::Rundown, //
};
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// The `block_device_operations` of a disk, and the rundown of its [`ioctl`](super::ioctl). The
/// `private_data` of the disk points here.
///
/// The table must survive the module of the driver. An opener of a disk holds the module by
/// `owner`. The last close drops the reference to the module first and that to the disk second. If
/// the disk was removed before, the module may be gone when C reads `free_disk` from the table and
/// calls it. Therefore:
///
/// - The table has its own allocation, not one in static memory of the driver.
/// - `free_disk` is a function of this crate, as are `open` and `release`. Nothing here is generic or
///   inlined, so none of it is compiled into the driver.
/// - The exit of this crate's module calls [`wait_for_released_disks`].
///
/// `ioctl` may be a function of the driver, because its caller has the disk open.
#[pin_data]
pub(super) struct DiskFops {
    table: bindings::block_device_operations,
    /// Calls of `ioctl` are inside. Each has the disk open, which keeps this allocation.
    #[pin]
    pub(super) rundown: Rundown,
    /// Counts the opens of the disk.
    pub(super) opens: DiskOpens,
}

/// Type of a disk's `ioctl` in C.
pub(super) type IoctlFn = unsafe extern "C" fn(
    *mut bindings::block_device,
    bindings::blk_mode_t,
    c_uint,
    c_ulong,
) -> c_int;

/// `ioctl` for 32-bit processes: converts the argument to a pointer and calls `ioctl`.
#[cfg(CONFIG_COMPAT)]
const COMPAT_IOCTL: Option<IoctlFn> = Some(bindings::blkdev_compat_ptr_ioctl);
#[cfg(not(CONFIG_COMPAT))]
const COMPAT_IOCTL: Option<IoctlFn> = None;

/// Number of tables that are allocated.
static TABLES: Atomic<u32> = Atomic::new(0);

impl DiskFops {
    /// Allocates the table of a disk of the driver in `module`.
    #[inline(never)]
    pub(super) fn new(
        module: &'static ThisModule,
        ioctl: IoctlFn,
        openers: Arc<Openers>,
    ) -> Result<NonNull<Self>> {
        let table = bindings::block_device_operations {
            owner: module.as_ptr(),
            open: Some(open),
            release: Some(release),
            free_disk: Some(free_disk),
            ioctl: Some(ioctl),
            compat_ioctl: COMPAT_IOCTL,
            ..pin_init::zeroed()
        };
        let fops = KBox::pin_init(
            pin_init!(Self { table, rundown <- Rundown::new(), opens: DiskOpens::new(openers) }),
            GFP_KERNEL,
        )?;

        TABLES.add(1, ordering::Relaxed);
        // SAFETY: The allocation is not moved before `free` drops it.
        Ok(NonNull::from(KBox::leak(unsafe {
            Pin::into_inner_unchecked(fops)
        })))
    }

    /// Sets the table of a disk.
    ///
    /// # Safety
    ///
    /// `disk` is valid and not added. If it is added later, the disk owns the table.
    pub(super) unsafe fn attach(fops: NonNull<Self>, disk: *mut bindings::gendisk) {
        // SAFETY: By the safety requirements of this function, `disk` is valid and not in use.
        unsafe {
            (*disk).fops = &raw const (*fops.as_ptr()).table;
            (*disk).private_data = fops.as_ptr().cast();
        }
    }

    /// Returns the table of a disk.
    ///
    /// # Safety
    ///
    /// `disk` is valid, has a table from [`DiskFops::attach`], and is not freed for `'a`.
    pub(super) unsafe fn of<'a>(disk: *mut bindings::gendisk) -> &'a Self {
        // SAFETY: By the safety requirements of this function, `private_data` points to the table.
        unsafe { &*(*disk).private_data.cast() }
    }

    /// Frees the table.
    ///
    /// # Safety
    ///
    /// `fops` is from [`DiskFops::new`], and this is its last use.
    #[inline(never)]
    pub(super) unsafe fn free(fops: NonNull<Self>) {
        // SAFETY: By the safety requirements of this function, `fops` is the box that `new` leaked.
        drop(unsafe { KBox::from_raw(fops.as_ptr()) });
        // Pairs with the load in `wait_for_released_disks`.
        TABLES.fetch_sub(1, ordering::Release);
    }
}

/// `open` of the table. C calls it for each open of the disk or of a partition, with the disk's
/// `open_mutex` held.
///
/// # Safety
///
/// `disk` is valid and has a table from [`DiskFops::attach`].
#[inline(never)]
unsafe extern "C" fn open(disk: *mut bindings::gendisk, _mode: bindings::blk_mode_t) -> c_int {
    // SAFETY: By the safety requirements of this function; the opener holds the disk for the call.
    let opened = unsafe { DiskFops::of(disk) }.opens.open();
    opened.map_or_else(|error| error.to_errno(), |()| 0)
}

/// `release` of the table. C calls it once for each [`open`] that succeeded, with the disk's
/// `open_mutex` held.
///
/// # Safety
///
/// `disk` is valid and has a table from [`DiskFops::attach`].
#[inline(never)]
unsafe extern "C" fn release(disk: *mut bindings::gendisk) {
    // SAFETY: By the safety requirements of this function; the opener drops its reference to the disk
    // after the call.
    unsafe { DiskFops::of(disk) }.opens.close();
}

/// `free_disk` of the table. C calls it when the last reference to an added disk is dropped, and
/// does not use the table afterwards.
///
/// # Safety
///
/// `disk` is valid and has a table from [`DiskFops::attach`].
#[inline(never)]
unsafe extern "C" fn free_disk(disk: *mut bindings::gendisk) {
    // SAFETY: By the safety requirements of this function, `private_data` is the table. C does not
    // use it afterwards.
    unsafe {
        DiskFops::free(NonNull::new_unchecked(
            (*disk).private_data.cast::<DiskFops>(),
        ))
    };
}

/// Waits until [`free_disk`] has run for every disk. The last call may not have returned yet.
///
/// The exit of this crate's module calls it, and waits for the return of that call separately. The
/// drivers are gone by then, so only last steps of a close can be pending. May sleep.
pub(crate) fn wait_for_released_disks() {
    while TABLES.load(ordering::Acquire) != 0 {
        fsleep(Delta::from_millis(1));
    }
}
