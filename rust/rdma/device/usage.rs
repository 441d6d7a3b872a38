// SPDX-License-Identifier: GPL-2.0

//! Counted use of a device, for which its removal waits.

use super::Device;
use crate::{
    bindings, new_irq_lock,
    sync::{
        IrqLock,
        TimedCompletion, //
    },
};
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// How many use a device, and whether it is going away.
struct Users {
    count: usize,
    removing: bool,
}

/// One device as one client sees it, from `add` to the end of `remove`.
///
/// # Invariants
///
/// `raw` is registered until [`DeviceUsage::remove`] has returned, which waits for
/// `users.count` to reach zero.
#[pin_data]
pub(crate) struct DeviceUsage {
    raw: NonNull<bindings::ib_device>,
    #[pin]
    users: IrqLock<Users>,
    #[pin]
    idle: TimedCompletion,
}

// SAFETY: `raw` is used under the rules of `Device`, which is `Send` and `Sync`.
unsafe impl Send for DeviceUsage {}
// SAFETY: As above.
unsafe impl Sync for DeviceUsage {}

impl DeviceUsage {
    /// # Safety
    ///
    /// `raw` must stay registered until [`DeviceUsage::remove`] has returned.
    pub(crate) unsafe fn new(raw: NonNull<bindings::ib_device>) -> Result<Arc<Self>> {
        Arc::pin_init(
            // INVARIANT: By the contract.
            pin_init!(Self {
                raw,
                users <- new_irq_lock!(Users { count: 0, removing: false }, "rrdma::DeviceUsage"),
                idle <- TimedCompletion::new(),
            }),
            GFP_KERNEL,
        )
    }

    pub(crate) fn is(&self, raw: *mut bindings::ib_device) -> bool {
        self.raw.as_ptr() == raw
    }

    /// A use of the device, unless it is being removed.
    pub(crate) fn acquire(self: &Arc<Self>) -> Option<DeviceRef> {
        let mut users = self.users.lock();
        if users.removing {
            return None;
        }
        users.count = users.count.checked_add(1)?;
        Some(DeviceRef(self.clone()))
    }

    /// Refuses new uses; `tell` is called once, then the last use is awaited.
    pub(crate) fn remove(self: &Arc<Self>, tell: impl FnOnce(&Device)) {
        // The removal is a use of its own, so that `idle` fires after `tell`.
        let own = {
            let mut users = self.users.lock();
            users.removing = true;
            users.count = users.count.saturating_add(1);
            DeviceRef(self.clone())
        };
        tell(&own);
        drop(own);
        self.idle.wait();
    }
}

/// A counted use of a device: while one exists, the device stays registered.
///
/// Every verbs object holds one. Dropping the last one lets a removal of the
/// device that is waiting go on. May be cloned and dropped in any context.
///
/// # Invariants
///
/// Is counted in `users` of its `DeviceUsage`.
pub struct DeviceRef(Arc<DeviceUsage>);

impl DeviceRef {
    /// Whether a removal of the device waits for this reference, and others.
    pub fn is_removing(&self) -> bool {
        self.0.users.lock().removing
    }
}

impl core::ops::Deref for DeviceRef {
    type Target = Device;

    #[inline]
    fn deref(&self) -> &Device {
        // SAFETY: By the invariants of `DeviceUsage` and `self`, the device is
        // registered while `self` lives.
        unsafe { Device::from_raw(self.0.raw.as_ptr()) }
    }
}

impl Clone for DeviceRef {
    fn clone(&self) -> Self {
        // A use that exists may beget others while the removal waits for all.
        let mut users = self.0.users.lock();
        users.count = users.count.saturating_add(1);
        // INVARIANT: Counted above.
        Self(self.0.clone())
    }
}

impl Drop for DeviceRef {
    fn drop(&mut self) {
        let mut users = self.0.users.lock();
        users.count = users.count.saturating_sub(1);
        if users.count == 0 && users.removing {
            self.0.idle.complete_all();
        }
    }
}
