// SPDX-License-Identifier: GPL-2.0

//! References to a device, for which its removal waits.

use super::Device;
use crate::{
    bindings, memory,
    sync::{
        new_mutex,
        LaterFn,
        Rundown,
        TimedCompletion, //
    },
};
use core::ptr::NonNull;
use kernel::{
    alloc::{
        AllocError,
        Flags, //
    },
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// A device as one client uses it, from `add` to the end of `remove`.
///
/// # Invariants
///
/// `raw` is registered until [`DeviceUsage::remove`] has returned, which waits until `users` is
/// empty.
#[pin_data]
pub(crate) struct DeviceUsage {
    raw: NonNull<bindings::ib_device>,
    #[pin]
    users: Rundown,
    /// Completed when the removal begins.
    #[pin]
    wakes: Mutex<KVec<Arc<TimedCompletion>>>,
}

// SAFETY: `raw` is used as a `Device`, which is `Send` and `Sync`.
unsafe impl Send for DeviceUsage {}
// SAFETY: `raw` is used as a `Device`, which is `Send` and `Sync`.
unsafe impl Sync for DeviceUsage {}

impl DeviceUsage {
    /// Creates the state for a device without references.
    ///
    /// # Safety
    ///
    /// `raw` must stay registered until [`DeviceUsage::remove`] has returned.
    pub(crate) unsafe fn new(raw: NonNull<bindings::ib_device>) -> Result<Arc<Self>> {
        Arc::pin_init(
            // INVARIANT: By the safety requirements.
            pin_init!(Self {
                raw,
                users <- Rundown::new(),
                wakes <- new_mutex!(KVec::new(), "rrdma::DeviceUsage"),
            }),
            GFP_KERNEL,
        )
    }

    pub(crate) fn is(&self, raw: *mut bindings::ib_device) -> bool {
        self.raw.as_ptr() == raw
    }

    /// Returns a reference to the device, unless the device is being removed. Any context.
    pub(crate) fn acquire(self: &Arc<Self>) -> Option<DeviceRef> {
        // INVARIANT: `add` has counted the reference.
        self.users.add().then(|| DeviceRef(self.clone()))
    }

    /// Refuses new references, calls `tell` once, wakes who [watches](RemovalWatch), then waits until all
    /// references are dropped. Sleeps.
    pub(crate) fn remove(&self, tell: impl FnOnce(&Device)) {
        self.users.close();
        // SAFETY: By the type invariant, the device is registered until this function returns.
        let device = unsafe { Device::from_raw(self.raw.as_ptr()) };
        tell(device);
        for wake in self.wakes.lock().iter() {
            wake.complete();
        }
        self.users.wait(|count| {
            pr_warn!(
                "{}: has waited for 10 s until a driver drops its {count} references to the device\n",
                device.name()
            );
        });
    }
}

/// A counted reference to a device, which stays registered while the reference exists.
///
/// Each verbs object holds one. The removal of the device waits until the last one is dropped. May
/// be cloned and dropped in any context.
///
/// # Invariants
///
/// The reference is counted in `users` of its `DeviceUsage`.
pub struct DeviceRef(Arc<DeviceUsage>);

impl DeviceRef {
    /// Returns whether the device is being removed, and thus waits for this reference.
    pub fn is_removing(&self) -> bool {
        self.0.users.is_closed()
    }

    /// Calls `act` with `value` in a work item, which may sleep for any time. Any context that `flags` allow.
    ///
    /// The removal of the device from the driver waits for the work item, and so does the unload of the driver.
    ///
    /// # Errors
    ///
    /// `AllocError`: without memory, `value` leaks.
    pub(in crate::rdma) fn defer<T: Send + 'static>(
        &self,
        flags: Flags,
        value: T,
        act: impl FnOnce(T) + Send + 'static,
    ) -> Result<(), AllocError> {
        queue_work(self.clone(), flags, LaterFn::new(value, act, flags)?)
    }
}

/// Queues a work item that calls a function of a driver, and then drops the reference to the device. That is code of
/// this module, as this function is not inlined into others: the driver's may be unloaded then.
#[inline(never)]
fn queue_work(device: DeviceRef, flags: Flags, func: LaterFn) -> Result<(), AllocError> {
    func.queue(device, flags)
}

/// Completes a completion when the removal of a device begins. Dropping this ends that, and may sleep.
pub(crate) struct RemovalWatch {
    device: DeviceRef,
    wake: Arc<TimedCompletion>,
}

impl RemovalWatch {
    /// Completes `wake` when the removal of `device` begins. If it has begun before, `wake` may stay
    /// uncompleted: check [`is_removing`](Self::is_removing) before each wait. May sleep.
    pub(crate) fn new(device: DeviceRef, wake: Arc<TimedCompletion>) -> Result<Self> {
        // Allocated without I/O: a thread that reconnects for blocked I/O may be the caller, or wait for
        // the lock.
        let watched = wake.clone();
        memory::without_io(|| device.0.wakes.lock().push(watched, GFP_KERNEL))?;
        Ok(Self { device, wake })
    }

    /// Returns whether the device is being removed. Any context.
    pub(crate) fn is_removing(&self) -> bool {
        self.device.is_removing()
    }
}

impl Drop for RemovalWatch {
    fn drop(&mut self) {
        let mut wakes = self.device.0.wakes.lock();
        let own = wakes.iter().position(|wake| Arc::ptr_eq(wake, &self.wake));
        // One of those of this completion, which are alike. Dropped without the lock.
        let removed = own.map(|own| wakes.remove(own));
        drop(wakes);
        drop(removed);
    }
}

impl core::ops::Deref for DeviceRef {
    type Target = Device;

    #[inline]
    fn deref(&self) -> &Device {
        // SAFETY: By the type invariants of `DeviceUsage` and `DeviceRef`, the device is registered
        // while `self` lives.
        unsafe { Device::from_raw(self.0.raw.as_ptr()) }
    }
}

impl Clone for DeviceRef {
    fn clone(&self) -> Self {
        // Allowed during the removal, too: it waits for all references.
        self.0.users.add_next();
        // INVARIANT: Counted above.
        Self(self.0.clone())
    }
}

impl Drop for DeviceRef {
    fn drop(&mut self) {
        self.0.users.remove();
    }
}
