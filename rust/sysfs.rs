// SPDX-License-Identifier: GPL-2.0

//! Facts in sysfs, for udev and scripts, and what they may ask for.
//!
//! An [`Attribute`] is a file with one line that everyone may read: `show` writes the
//! line from the data of whatever has the file. Or it is one that root may write to, for
//! something to be done. What has files is a disk
//! ([`Operations::ATTRIBUTES`](crate::block::Operations::ATTRIBUTES)), or a [`Device`] of a
//! [`Class`] of the driver's own, which may be the parent of disks. All attributes are there
//! when user space is told of the device (its `add` event), and which of them it has is
//! decided then.
//!
//! # Who may still read and write
//!
//! Removing a disk or a device first hides its files, then waits for those who use them.
//! So `show` and `act` may run until the drop of the disk or device returns, and not any
//! longer: they must not wait for a lock that is held while they are dropped. A file that is
//! still open then gives `ENODEV`.
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
    Owner,
    Table, //
};
