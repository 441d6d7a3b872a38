// SPDX-License-Identifier: GPL-2.0

//! State shared by a node and its open files.
//!
//! C header: [`include/linux/cdev.h`](srctree/include/linux/cdev.h)

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

/// Driver's side of a [`Node`](super::Node).
pub trait Operations: Send + Sync + 'static {
    /// Called when a process opens the device. May sleep.
    ///
    /// # Errors
    ///
    /// The `errno` for the process.
    fn open(&self) -> Result {
        Ok(())
    }

    /// Handles an ioctl; the result is that of the system call. May sleep. Runs concurrently for
    /// several processes, also while and after the node is dropped.
    ///
    /// # Errors
    ///
    /// The `errno` for the process; `ENOTTY` for an unknown ioctl.
    fn ioctl(&self, call: &Call) -> Result<c_int>;
}

/// State shared by a node and its open files.
pub(super) struct CdevInner {
    /// The `cdev` of the node; C counts the references to it and frees it.
    cdev: NonNull<bindings::cdev>,
    gone: RelaxedBool,
    operations: Arc<dyn Operations>,
}

// SAFETY: The pointer is only compared, and passed to C functions that any thread may call.
unsafe impl Send for CdevInner {}
// SAFETY: The pointer is only compared, and passed to C functions that any thread may call. The
// flag and the operations are `Sync`.
unsafe impl Sync for CdevInner {}

global_lock! {
    // SAFETY: `init` below initialises it before any node exists.
    unsafe(uninit) static NODES: Mutex<KVec<Arc<CdevInner>>> = KVec::new();
}

/// Initialises the list of nodes. Called once, when the module is loaded.
pub(crate) fn init() {
    // SAFETY: The crate's module init calls this exactly once.
    unsafe { NODES.init() };
}

/// Frees the list of nodes. Called once, when the module is unloaded.
pub(crate) fn forget() {
    *NODES.lock() = KVec::new();
}

impl CdevInner {
    /// Adds `cdev`, so that it can be opened. Does nothing on an error.
    ///
    /// # Safety
    ///
    /// `cdev` has its owner and its table, belongs to the caller, and was not added.
    pub(super) unsafe fn add(
        cdev: NonNull<bindings::cdev>,
        number: bindings::dev_t,
        operations: Arc<dyn Operations>,
    ) -> Result<Arc<Self>> {
        let inner = Arc::new(
            Self {
                cdev,
                gone: RelaxedBool::new(false),
                operations,
            },
            GFP_KERNEL,
        )?;
        let mut nodes = NODES.lock();
        let taken = nodes.iter().any(|other| {
            // SAFETY: A listed node was added, and is removed from the list before it is deleted.
            unsafe { (*other.cdev.as_ptr()).dev == number }
        });
        if taken {
            return Err(EEXIST);
        }
        nodes.reserve(1, GFP_KERNEL)?;
        // SAFETY: By the safety requirements of this function, `cdev` is complete and not added. An
        // `open` that runs before the `push` waits for the lock of the list.
        to_result(unsafe { bindings::cdev_add(cdev.as_ptr(), number, 1) })?;
        nodes.push(inner.clone(), GFP_KERNEL)?;
        Ok(inner)
    }

    /// Removes the node: it cannot be opened any more, and ioctls of open files fail.
    ///
    /// # Safety
    ///
    /// The node was added and does not use this afterwards.
    pub(super) unsafe fn remove(self: &Arc<Self>) {
        // The lock is held until the `cdev` is deleted, so that no new node gets its number: C
        // would delete the map entry of the new one.
        let mut nodes = NODES.lock();
        // New opens do not find the node; ioctls of open files see the flag.
        nodes.retain(|other| !Arc::ptr_eq(other, self));
        self.gone.set(true);
        // SAFETY: By the safety requirements of this function, the `cdev` was added. Open files
        // hold references to it, and C frees it.
        unsafe { bindings::cdev_del(self.cdev.as_ptr()) };
    }

    /// Returns the state of the node with this `cdev`, unless it was removed.
    pub(super) fn of(cdev: *mut bindings::cdev) -> Option<Arc<Self>> {
        let nodes = NODES.lock();
        let mut nodes = nodes.iter();
        nodes.find(|inner| inner.cdev.as_ptr() == cdev).cloned()
    }

    /// Calls [`Operations::open`].
    pub(super) fn open(&self) -> Result {
        self.operations.open()
    }

    /// Calls [`Operations::ioctl`], unless the node was removed.
    pub(super) fn ioctl(&self, call: &Call) -> Result<c_int> {
        match self.gone.get() {
            true => Err(ENODEV),
            false => self.operations.ioctl(call),
        }
    }
}
