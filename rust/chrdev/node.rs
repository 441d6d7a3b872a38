// SPDX-License-Identifier: GPL-2.0

//! Nodes: character devices that can be opened.
//!
//! C header: [`include/linux/cdev.h`](srctree/include/linux/cdev.h)

use super::{
    cdev_inner::CdevInner,
    file,
    Numbers,
    Operations, //
};
use crate::{
    bindings,
    sync::{
        drop_later,
        DropsLater,
        ModuleUse,
        SleepingDrop,
        UseKind, //
    },
};
use core::{
    panic::Location,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A character device, which can be opened until this is dropped. C: `cdev_add()`, `cdev_del()`.
///
/// Dropping it does not wait for open files; see the [module](crate::chrdev). It sleeps. In atomic context, a work item
/// drops it, and its operations.
pub struct Node(SleepingDrop<AddedNode>);

/// An added character device. Dropping this sleeps.
///
/// # Invariants
///
/// The `cdev` of `inner` was added with `number`.
struct AddedNode {
    number: bindings::dev_t,
    inner: Arc<CdevInner>,
    _numbers: Arc<Numbers>,
    _module: ModuleUse,
}

impl Node {
    /// Creates the node with number `index` of `numbers`, for the driver in `module`. May sleep.
    ///
    /// It can be opened before this returns.
    ///
    /// # Errors
    ///
    /// - `EBUSY` while the module is being loaded: if its init function failed later, openers would
    ///   run code of a freed module.
    /// - `EINVAL` if `index` is out of range.
    /// - `EEXIST` if there is a node with this number.
    /// - `ENOMEM`.
    #[track_caller]
    pub fn new(
        numbers: Arc<Numbers>,
        index: u32,
        module: &'static ThisModule,
        operations: Arc<dyn Operations>,
    ) -> Result<Self> {
        // SAFETY: `module` is static.
        if unsafe { bindings::module_is_loading(module.as_ptr()) } {
            return Err(EBUSY);
        }
        let module_use = ModuleUse::new(UseKind::Node, Location::caller())?;
        let number = numbers.get(index).ok_or(EINVAL)?;
        // SAFETY: `cdev_alloc()` has no requirements.
        let cdev = NonNull::new(unsafe { bindings::cdev_alloc() }).ok_or(ENOMEM)?;
        // SAFETY: The `cdev` was just allocated and has no other user. The table is static, in this
        // crate's module; `owner` is the driver's module.
        unsafe {
            (*cdev.as_ptr()).owner = module.as_ptr();
            (*cdev.as_ptr()).ops = file::TABLE.as_ptr();
        }
        // SAFETY: The `cdev` has its owner and its table, and was not added.
        unsafe { CdevInner::add(cdev, number, operations) }
            .inspect_err(|_| {
                // SAFETY: The `cdev` was not added and is not in the list, so this drops the last
                // reference.
                unsafe { bindings::kobject_put(&raw mut (*cdev.as_ptr()).kobj) };
            })
            // INVARIANT: `CdevInner::add` added the `cdev`.
            .map(|inner| AddedNode {
                number,
                inner,
                _numbers: numbers,
                _module: module_use,
            })
            .map(|added| Self(SleepingDrop::new(added)))
    }

    /// Returns the device number.
    pub(crate) fn number(&self) -> bindings::dev_t {
        self.0.number
    }
}

impl DropsLater for AddedNode {
    #[inline(never)]
    fn drop_later(self) {
        drop_later("character device", self);
    }
}

impl Drop for AddedNode {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, the `cdev` was added. `inner` is not used afterwards.
        unsafe { self.inner.remove() };
    }
}
