// SPDX-License-Identifier: GPL-2.0

//! A borrowed device cannot be kept after its removal; only a counted use delays the removal.
//!
//! refused: E0521: borrowed data escapes outside of associated function

use kernel::{
    prelude::*,
    sync::Mutex, //
};
use rrdma::rdma::{
    client::Client,
    device::{
        Device,
        DeviceRef, //
    },
};

pub(crate) struct Consumer;

#[pin_data]
pub(crate) struct Known {
    #[pin]
    counted: Mutex<Option<DeviceRef>>,
    #[pin]
    borrowed: Mutex<Option<&'static Device>>,
}

impl Client for Consumer {
    const NAME: &'static CStr = c"consumer";

    type Context = Known;

    fn removing(known: &Known, device: &Device) {
        drop(known.counted.lock().take());
        #[cfg(misuse)]
        known.borrowed.lock().replace(device); //~
    }
}
