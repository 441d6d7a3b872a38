// SPDX-License-Identifier: GPL-2.0

//! File operations of nodes.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use super::cdev_inner::CdevInner;
use crate::{
    bindings,
    ioctl::Call, //
};
use kernel::{
    error::from_result,
    prelude::*,
    sync::Arc, //
};

/// Table of file operations of all nodes.
///
/// On close, C drops the reference to the module in `cdev.owner`, then reads the other module that
/// it must release, `owner`, from this table. So the table must belong to `owner`: this crate's
/// module. The driver's module is in `cdev.owner`. C holds it from before [`open`] until after
/// [`release`].
#[repr(transparent)]
pub(super) struct Table(bindings::file_operations);

// SAFETY: The table is constant.
unsafe impl Sync for Table {}

impl Table {
    /// Returns the table for C.
    pub(super) fn as_ptr(&self) -> *const bindings::file_operations {
        &raw const self.0
    }
}

pub(super) static TABLE: Table = Table(bindings::file_operations {
    owner: (&raw const bindings::__this_module).cast_mut(),
    open: Some(open),
    release: Some(release),
    unlocked_ioctl: Some(ioctl),
    // Converts the pointer argument of 32-bit processes and calls `ioctl`; `None` if the kernel
    // does not support such processes.
    compat_ioctl: bindings::compat_ptr_ioctl,
    ..pin_init::zeroed()
});

/// `open` of the table. Stores a reference in `private_data`.
///
/// # Safety
///
/// `inode` belongs to a node's `cdev`, and `file` is being opened. C holds both, the `cdev` and its
/// `owner` during the call.
unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: By the safety requirements of this function, `inode` is valid. The `cdev` is not
    // freed during the call, so no other one has its address.
    let inner = CdevInner::of(unsafe { bindings::inode_cdev(inode) });
    from_result(|| {
        let inner = inner.ok_or(ENXIO)?;
        inner.open()?;
        // SAFETY: By the safety requirements of this function, `file` is valid. `private_data`
        // belongs to this table until `release`.
        unsafe { (*file).private_data = Arc::into_raw(inner).cast_mut().cast() };
        Ok(0)
    })
}

/// `release` of the table, called on the last close of a file.
///
/// # Safety
///
/// `file` was opened by [`open`] and is not used afterwards.
unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: By the safety requirements of this function, `open` stored the reference. Dropping
    // the last one calls code of the driver, whose module C holds by `cdev.owner`.
    drop(unsafe { Arc::from_raw((*file).private_data.cast::<CdevInner>().cast_const()) });
    0
}

/// `unlocked_ioctl` of the table.
///
/// # Safety
///
/// `file` was opened by [`open`], and is not released before this returns.
unsafe extern "C" fn ioctl(file: *mut bindings::file, number: c_uint, argument: c_ulong) -> c_long {
    // SAFETY: By the safety requirements of this function, `open` stored the reference, and
    // `release` has not taken it.
    let inner = unsafe { &*(*file).private_data.cast::<CdevInner>() };
    // An `int` fits a `long`.
    from_result(|| Ok(inner.ioctl(&Call::new(number, argument))? as c_long))
}
