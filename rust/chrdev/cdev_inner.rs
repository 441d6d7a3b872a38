// SPDX-License-Identifier: GPL-2.0

//! What files and their node share.
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

/// What a driver does for those who open a [`Node`](super::Node).
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

impl CdevInner {
    /// Makes it possible to open `cdev`. If it fails all is as before.
    ///
    /// # Safety
    ///
    /// `cdev` has its owner and its table, is the caller's, and was not added.
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
            // SAFETY: Who is in the list was added, and is not deleted before it is taken out.
            unsafe { (*other.cdev.as_ptr()).dev == number }
        });
        if taken {
            return Err(EEXIST);
        }
        nodes.reserve(1, GFP_KERNEL)?;
        // SAFETY: By the requirements of this function. Who opens it finds it in the list: that is locked.
        to_result(unsafe { bindings::cdev_add(cdev.as_ptr(), number, 1) })?;
        nodes.push(inner.clone(), GFP_KERNEL)?;
        Ok(inner)
    }

    /// Takes the node away: it cannot be opened any more, and files that are open are told.
    ///
    /// # Safety
    ///
    /// It was added, and this is the last use by its node.
    pub(super) unsafe fn remove(self: &Arc<Self>) {
        // Until it is deleted nobody takes its number: C would take the new one for it.
        let mut nodes = NODES.lock();
        // No file finds it any more, and those that did are told.
        nodes.retain(|other| !Arc::ptr_eq(other, self));
        self.gone.set(true);
        // SAFETY: By the requirements of this function. Files that are open have a
        // reference of their own, and its memory is C's.
        unsafe { bindings::cdev_del(self.cdev.as_ptr()) };
    }

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
