// SPDX-License-Identifier: GPL-2.0

//! The RDMA device that a controller uses.

use kernel::{
    new_mutex,
    prelude::*,
    sync::Mutex, //
};
use rrdma::rdma::device::{
    Device,
    DeviceRef, //
};

/// The device on which a controller has objects. While it is set, the removal of the device waits.
/// The lock is a leaf.
#[pin_data]
pub(super) struct RdmaDevice {
    #[pin]
    device: Mutex<Option<DeviceRef>>,
}

/// Error: the device is being removed.
pub(super) struct Removing;

impl RdmaDevice {
    /// Returns a slot without a device.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            device <- new_mutex!(None, "rnvmf::RdmaDevice"),
        })
    }

    /// Sets the device. May sleep.
    ///
    /// # Errors
    ///
    /// [`Removing`] if the device is being removed. The device is set nevertheless, until
    /// [`release`](Self::release).
    pub(super) fn set(&self, device: &DeviceRef) -> Result<(), Removing> {
        *self.device.lock() = Some(device.clone());
        // A removal that began too early to see the device here has set its flag by now.
        match device.is_removing() {
            true => Err(Removing),
            false => Ok(()),
        }
    }

    /// Releases the device. The controller's objects on it must be gone. May sleep.
    pub(super) fn release(&self) {
        let device = self.device.lock().take();
        drop(device);
    }

    /// Whether `device` is set. May sleep.
    pub(super) fn is(&self, device: &Device) -> bool {
        let used = self.device.lock();
        used.as_ref().is_some_and(|used| **used == *device)
    }
}
