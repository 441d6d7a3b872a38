// SPDX-License-Identifier: GPL-2.0

//! sysfs attributes of disks and devices, for udev and scripts.
//!
//! An [`Attribute`] is a file. Either everyone may read it, and `show` writes its line from the
//! data of the owner, or root may write to it, which runs an action. The owner is a disk
//! ([`Operations::ATTRIBUTES`](crate::block::Operations::ATTRIBUTES)), or a [`Device`] of a
//! [`Class`], which may be the parent of disks. All attributes exist before user space gets the
//! `add` uevent, and their visibility is decided then.
//!
//! # Removal
//!
//! Removing a disk or device hides its files and waits for their present users. `show` and `act`
//! may therefore run until the drop of the disk or device returns, but not longer. They must not
//! wait for a lock that is held during this drop. Later accesses to an open file fail with
//! `ENODEV`.
//!
//! C headers: [`include/linux/sysfs.h`](srctree/include/linux/sysfs.h),
//! [`include/linux/device.h`](srctree/include/linux/device.h)

mod attribute;
mod device;
mod table;

pub use attribute::Attribute;
pub use device::{
    Attributes,
    Class,
    Device, //
};
pub(crate) use table::{
    HasAttributes,
    Table, //
};
