// SPDX-License-Identifier: GPL-2.0

//! The client of RDMA devices.

use kernel::{
    str::CStr,
    sync::Arc, //
};
use rrdma::rdma::{
    client::Client,
    device::Device, //
};

/// Handler of removed devices.
pub(crate) trait DeviceRemoval: Send + Sync {
    /// Deletes the controllers that use a device. Sleeps.
    fn removing(&self, device: &Device);
}

/// The client.
pub(crate) struct Devices;

impl Client for Devices {
    const NAME: &'static CStr = c"nvme_rdma_rust";

    type Context = Arc<dyn DeviceRemoval>;

    fn removing(removal: &Arc<dyn DeviceRemoval>, device: &Device) {
        removal.removing(device);
    }
}
