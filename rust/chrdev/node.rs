// SPDX-License-Identifier: GPL-2.0

//! What can be opened.
//!
//! C header: [`include/linux/cdev.h`](srctree/include/linux/cdev.h)

use super::{
    file,
    Numbers, //
};
use crate::{
    bindings,
    ioctl::Call,
    sync::RelaxedBool, //
};
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        global_lock,
        Arc, //
    },
};

/// What a driver does for those who open a [`Node`].
pub trait Operations: Send + Sync + 'static {
    /// Somebody wants to open it. May sleep.
    ///
    /// # Errors
    ///
    /// What the process gets as `errno`.
    fn open(&self) -> Result {
        Ok(())
    }

    /// Does what a process asks for. What is returned is the result of its `ioctl`. May sleep;
    /// for many processes at once; also while the node goes, and on when it is gone.
    ///
    /// # Errors
    ///
    /// What the process gets as `errno`; `ENOTTY` for a call that is not known.
    fn ioctl(&self, call: &Call) -> Result<c_int>;
}

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

/// What files of a node have of it.
pub(super) struct CdevInner {
    /// C's half of the node, which is C's own memory.
    cdev: NonNull<bindings::cdev>,
    gone: RelaxedBool,
    operations: Arc<dyn Operations>,
}

// SAFETY: The pointer is used by the node, which C allows any thread to do, and for comparison.
unsafe impl Send for CdevInner {}
// SAFETY: As above; flag and operations are `Sync`.
unsafe impl Sync for CdevInner {}

global_lock! {
    // SAFETY: Initialised by `init` below, before there is a node.
    unsafe(uninit) static NODES: Mutex<KVec<Arc<CdevInner>>> = KVec::new();
}

/// Makes the global state of this file; called once, when the module loads.
pub(crate) fn init() {
    // SAFETY: Called exactly once, by the crate's module init.
    unsafe { NODES.init() };
}

/// Frees what is left of it; called once, when the module goes.
pub(crate) fn forget() {
    *NODES.lock() = KVec::new();
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
        add(cdev, number, operations)
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

/// Makes it possible to open `cdev`. If it fails all is as before.
fn add(
    cdev: NonNull<bindings::cdev>,
    number: bindings::dev_t,
    operations: Arc<dyn Operations>,
) -> Result<Arc<CdevInner>> {
    let inner = Arc::new(
        CdevInner {
            cdev,
            gone: RelaxedBool::new(false),
            operations,
        },
        GFP_KERNEL,
    )?;
    let mut nodes = NODES.lock();
    let taken = nodes.iter().any(|other| {
        // SAFETY: Who is in the list was added, and is not deleted before it is taken out.
        unsafe { (*other.cdev.as_ptr()).dev == number }
    });
    if taken {
        return Err(EEXIST);
    }
    nodes.reserve(1, GFP_KERNEL)?;
    // SAFETY: It has owner and table. Who opens it finds it in the list: that is locked.
    to_result(unsafe { bindings::cdev_add(cdev.as_ptr(), number, 1) })?;
    nodes.push(inner.clone(), GFP_KERNEL)?;
    Ok(inner)
}

impl Drop for Node {
    fn drop(&mut self) {
        // Until it is deleted nobody takes its number: C would take the new one for it.
        let mut nodes = NODES.lock();
        // No file finds it any more, and those that did are told.
        nodes.retain(|other| !Arc::ptr_eq(other, &self.inner));
        self.inner.gone.set(true);
        // SAFETY: By the invariants, and this is our last use. Files that are open have a
        // reference of their own, and its memory is C's.
        unsafe { bindings::cdev_del(self.inner.cdev.as_ptr()) };
    }
}

impl CdevInner {
    /// What the node behind `cdev` serves, if it is there.
    pub(super) fn of(cdev: *mut bindings::cdev) -> Option<Arc<Self>> {
        let nodes = NODES.lock();
        let mut nodes = nodes.iter();
        nodes.find(|inner| inner.cdev.as_ptr() == cdev).cloned()
    }

    /// Somebody opens it.
    pub(super) fn open(&self) -> Result {
        self.operations.open()
    }

    /// A process asks.
    pub(super) fn ioctl(&self, call: &Call) -> Result<c_int> {
        match self.gone.get() {
            true => Err(ENODEV),
            false => self.operations.ioctl(call),
        }
    }
}
