// SPDX-License-Identifier: GPL-2.0

//! What can be opened.
//!
//! C header: [`include/linux/cdev.h`](srctree/include/linux/cdev.h)

use super::{
    cdev_inner::CdevInner,
    file,
    Numbers,
    Operations, //
};
use crate::bindings;
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A character device. It can be opened until this is dropped, which sleeps, but waits for nobody
/// who has it open: see the [module](crate::chrdev). C: `cdev_add`, `cdev_del`.
///
/// # Invariants
///
/// The `cdev` of `inner` was added, with `number`.
pub struct Node {
    number: bindings::dev_t,
    inner: Arc<CdevInner>,
    _numbers: Arc<Numbers>,
}

impl Node {
    /// Makes a node with the number of place `index`, of the driver in `module`. It can be opened
    /// before this returns. Not while the module loads: if that failed, openers would be in a
    /// module that goes. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if there is no such number.
    /// - `EEXIST` if there is a node with it.
    /// - `ENOMEM`.
    pub fn new(
        numbers: Arc<Numbers>,
        index: u32,
        module: &'static ThisModule,
        operations: Arc<dyn Operations>,
    ) -> Result<Self> {
        let number = numbers.get(index).ok_or(EINVAL)?;
        // SAFETY: Allocates.
        let cdev = NonNull::new(unsafe { bindings::cdev_alloc() }).ok_or(ENOMEM)?;
        // SAFETY: It is ours, and nobody uses it yet. The table is static, and holds this crate's
        // module; `owner` holds the driver's.
        unsafe {
            (*cdev.as_ptr()).owner = module.as_ptr();
            (*cdev.as_ptr()).ops = file::TABLE.as_ptr();
        }
        // SAFETY: It has both, and was just allocated.
        unsafe { CdevInner::add(cdev, number, operations) }
            .inspect_err(|_| {
                // SAFETY: It was not added, and is not in the list: that was the last reference.
                unsafe { bindings::kobject_put(&raw mut (*cdev.as_ptr()).kobj) };
            })
            // INVARIANT: It was added.
            .map(|inner| Self {
                number,
                inner,
                _numbers: numbers,
            })
    }

    /// The device number for C.
    pub(crate) fn number(&self) -> bindings::dev_t {
        self.number
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // SAFETY: By the invariants, and this is our last use.
        unsafe { self.inner.remove() };
    }
}
