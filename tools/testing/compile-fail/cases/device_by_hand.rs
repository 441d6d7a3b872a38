// SPDX-License-Identifier: GPL-2.0

//! Only a client's registration creates a reference to a device, which counts as a use.
//!
//! refused: E0423: cannot initialize a tuple struct which contains private fields

use rrdma::rdma::{
    client::{
        Client,
        Registration, //
    },
    device::{
        Device,
        DeviceRef, //
    },
};

pub(crate) fn use_it<C: Client>(client: &Registration<C>, device: &Device) -> Option<DeviceRef> {
    #[cfg(misuse)]
    return Some(DeviceRef(device)); //~
    #[cfg(not(misuse))]
    client.acquire(device)
}
