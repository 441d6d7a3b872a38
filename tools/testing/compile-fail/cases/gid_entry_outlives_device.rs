// SPDX-License-Identifier: GPL-2.0

//! An entry of a GID table must be dropped before the reference to its device.
//!
//! refused: E0505: cannot move out of `device` because it is borrowed

use kernel::prelude::*;
use rrdma::rdma::device::{
    DeviceRef,
    Gid, //
};

pub(crate) fn first_gid(device: DeviceRef) -> Result<Gid> {
    let port = device.port(1).ok_or(ENODEV)?;
    let entry = port.gid(0)?;
    #[cfg(misuse)]
    drop(device); //~
    Ok(entry.gid())
}
