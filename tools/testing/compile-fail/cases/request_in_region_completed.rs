// SPDX-License-Identifier: GPL-2.0

//! A request does not end while a region has it.
//!
//! refused: E0507: cannot move out of a shared reference

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
    if let Some(carrier) = region.data() {
        carrier.request().complete(Status::Ok); //~
    }
    #[cfg(not(misuse))]
    if let Some(carrier) = region.release() {
        carrier.into_request().complete(Status::Ok);
    }
}
