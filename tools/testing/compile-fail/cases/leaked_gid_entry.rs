// SPDX-License-Identifier: GPL-2.0

//! An entry of a GID table that is leaked keeps its device borrowed.
//!
//! refused: E0505: cannot move out of `device` because it is borrowed

use kernel::prelude::*;
use rrdma::rdma::device::{
    DeviceRef,
    Gid,
    GidEntry, //
};

pub(crate) fn first_gid(device: DeviceRef) -> Result<Gid> {
    let port = device.port(1).ok_or(ENODEV)?;
    let entry: &GidEntry<'_> = KBox::leak(KBox::new(port.gid(0)?, GFP_KERNEL)?);
    #[cfg(misuse)]
    drop(device); //~
    Ok(entry.gid())
}
