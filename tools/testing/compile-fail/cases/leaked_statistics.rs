// SPDX-License-Identifier: GPL-2.0

//! Counters that are leaked keep their device borrowed.
//!
//! refused: E0505: cannot move out of `device` because it is borrowed

use kernel::prelude::*;
use rrdma::rdma::device::{
    DeviceRef,
    Statistics, //
};

pub(crate) fn count(device: DeviceRef) -> Result<usize> {
    let statistics: &Statistics<'_> = KBox::leak(KBox::new(device.statistics()?, GFP_KERNEL)?);
    #[cfg(misuse)]
    drop(device); //~
    Ok(statistics.iter().count())
}
