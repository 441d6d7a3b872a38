// SPDX-License-Identifier: GPL-2.0

//! Objects of a device whose drop sleeps, which may be dropped in any context.

use super::device::DeviceRef;
use crate::sync::DropsLater;
pub(in crate::rdma) use crate::sync::{
    may_sleep,
    SleepingDrop, //
};
use kernel::prelude::*;

/// An object of a device whose drop sleeps. The removal of the device waits for the work item that drops it; if it
/// leaks, the device is not removed.
pub(in crate::rdma) trait OfDevice: Send + 'static {
    /// Returns the device.
    fn device(&self) -> &DeviceRef;
}

impl<T: OfDevice> DropsLater for T {
    /// Inlined, it takes 2 KiB of stack where a queue pair of a sample is dropped (`rrdma_multicast`).
    #[inline(never)]
    fn drop_later(self) {
        let device = self.device().clone();
        if device.defer(GFP_ATOMIC, self, drop).is_err() {
            pr_err!(
                "{}: no memory to drop an object of the device, which leaks: it was dropped in atomic context\n",
                device.name()
            );
        }
    }
}
