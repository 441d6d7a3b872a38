// SPDX-License-Identifier: GPL-2.0

//! Open files of nodes, as C calls us.
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

/// The table of all nodes for C.
///
/// When a file is closed C lets go of the module in `cdev.owner`, then looks into this table for
/// the other one that it held. So that is the module which the table is in: this crate's. The
/// driver's is in `cdev.owner`, which C takes before [`open`] and lets go of after [`release`].
#[repr(transparent)]
pub(super) struct Table(bindings::file_operations);

// SAFETY: Nobody writes to it.
unsafe impl Sync for Table {}

impl Table {
    /// The table for C.
    pub(super) fn as_ptr(&self) -> *const bindings::file_operations {
        &raw const self.0
    }
}

pub(super) static TABLE: Table = Table(bindings::file_operations {
    owner: (&raw const bindings::__this_module).cast_mut(),
    open: Some(open),
    release: Some(release),
    unlocked_ioctl: Some(ioctl),
    // Makes an address of the argument, as 32-bit processes have them, and calls `ioctl`; `None`
    // on a kernel without such processes.
    compat_ioctl: bindings::compat_ptr_ioctl,
    ..pin_init::zeroed()
});

/// Called by C for a file that is opened. What it leaves in the file is the file's reference.
///
/// # Safety
///
/// `inode` is that of a node's `cdev`, and `file` is being opened; C holds both, the `cdev` and its
/// `owner` meanwhile.
unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: By the requirements of this function. The `cdev` is not freed before we return, so
    // no other one has its address.
    let inner = CdevInner::of(unsafe { bindings::inode_cdev(inode) });
    from_result(|| {
        let inner = inner.ok_or(ENXIO)?;
        inner.open()?;
        // SAFETY: By the requirements of this function; the field is ours until `release`.
        unsafe { (*file).private_data = Arc::into_raw(inner).cast_mut().cast() };
        Ok(0)
    })
}

/// Called by C when the last use of a file is over.
///
/// # Safety
///
/// `file` was opened by [`open`], and is used no more.
unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: By the requirements of this function it is what `open` left there. If it is the
    // last reference the operations are dropped by code of the driver, which C holds by `owner`.
    drop(unsafe { Arc::from_raw((*file).private_data.cast::<CdevInner>().cast_const()) });
    0
}

/// Called by C for a process that asks something.
///
/// # Safety
///
/// `file` was opened by [`open`], and is not released before this returns.
unsafe extern "C" fn ioctl(file: *mut bindings::file, number: c_uint, argument: c_ulong) -> c_long {
    // SAFETY: By the requirements of this function it is what `open` left there, which `release`
    // takes.
    let inner = unsafe { &*(*file).private_data.cast::<CdevInner>() };
    // An `int` is a `long`, too.
    from_result(|| Ok(inner.ioctl(&Call::new(number, argument))? as c_long))
}
