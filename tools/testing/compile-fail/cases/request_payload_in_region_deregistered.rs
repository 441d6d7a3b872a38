// SPDX-License-Identifier: GPL-2.0

//! A request cannot be completed while a region has its payload.
//!
//! refused: E0382: use of moved value: `carrier`

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::{
    block::{
        RequestPayload,
        Status, //
    },
    rdma::{
        dma::Direction,
        mr::Region, //
    },
};
use support::Driver;

pub(crate) fn expose(
    region: &mut Region<RequestPayload<Driver>>,
    carrier: RequestPayload<Driver>,
) -> Result {
    let mapped = region.dma_map(carrier, Direction::FromDevice);
    #[cfg(misuse)]
    carrier.into_request().complete(Status::Ok); //~
    mapped.map_err(|(error, carrier)| {
        carrier.into_request().complete(Status::IoError);
        error
    })
}
