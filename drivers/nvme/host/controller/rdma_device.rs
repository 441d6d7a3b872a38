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

/// The device on which a controller has objects; while it is set, the removal of that device waits.
/// Its lock is a leaf.
#[pin_data]
pub(super) struct RdmaDevice {
    #[pin]
    device: Mutex<Option<DeviceRef>>,
}

/// The device is being removed.
pub(super) struct Removing;

impl RdmaDevice {
    /// No device.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            device <- new_mutex!(None, "rnvmf::RdmaDevice"),
        })
    }

    /// Sets the device. May sleep.
    ///
    /// # Errors
    ///
    /// [`Removing`] if it is being removed; it is set all the same, until [`release`](Self::release).
    pub(super) fn set(&self, device: &DeviceRef) -> Result<(), Removing> {
        *self.device.lock() = Some(device.clone());
        // A removal that began before it could see the device here has set its mark.
        match device.is_removing() {
            true => Err(Removing),
            false => Ok(()),
        }
    }

    /// Drops the reference, when nothing is left on the device. May sleep.
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
