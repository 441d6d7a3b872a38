// SPDX-License-Identifier: GPL-2.0

//! A port cannot be kept after an event; the reference to its device can.
//!
//! refused: E0521: borrowed data escapes outside of associated function

use kernel::{
    prelude::*,
    sync::Mutex, //
};
use rrdma::rdma::{
    client::{
        Client,
        Event, //
    },
    device::{
        Device,
        DeviceRef,
        Port, //
    },
};

pub(crate) struct Consumer;

#[pin_data]
pub(crate) struct Known {
    #[pin]
    counted: Mutex<Option<(DeviceRef, u32)>>,
    #[pin]
    borrowed: Mutex<Option<Port<'static>>>,
}

impl Client for Consumer {
    const NAME: &'static CStr = c"consumer";

    type Context = Known;

    fn event(known: &Known, device: &DeviceRef, event: Event) {
        let Some(number) = event.port() else {
            return;
        };
        known.counted.lock().replace((device.clone(), number));
        #[cfg(misuse)]
        {
            *known.borrowed.lock() = device.port(number); //~
        }
    }

    fn removing(known: &Known, _device: &Device) {
        drop(known.counted.lock().take());
    }
}
