// SPDX-License-Identifier: GPL-2.0

//! A reference to a device that is leaked is not dropped: the removal of the device waits for it.
//!
//! refused: E0507: cannot move out of `*reference`

use kernel::prelude::*;
use rrdma::rdma::device::{
    Device,
    DeviceRef, //
};

pub(crate) fn keep(reference: KBox<DeviceRef>) -> &'static Device {
    let reference: &'static DeviceRef = KBox::leak(reference);
    let device: &'static Device = reference;
    #[cfg(misuse)]
    drop(*reference); //~
    device
}
