// SPDX-License-Identifier: GPL-2.0

//! A carrier is not taken apart while a region has it.
//!
//! refused: E0507: cannot move out of `*carrier` which is behind a shared reference

#[path = "../support.rs"]
mod support;

use rrdma::{
    block::Status,
    rdma::mr::{
        Carrier,
        Region, //
    },
};
use support::Driver;

pub(crate) fn end(region: &mut Region<Carrier<Driver>>) {
    #[cfg(misuse)]
    let carrier = region.data();
    #[cfg(not(misuse))]
    let carrier = region.release();
    if let Some(carrier) = carrier {
        carrier.into_request().complete(Status::Ok); //~
    }
}
