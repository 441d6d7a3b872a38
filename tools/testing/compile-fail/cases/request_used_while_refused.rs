// SPDX-License-Identifier: GPL-2.0

//! Data of a request cannot be used after the request was refused.
//!
//! refused: E0505: cannot move out of `request` because it is borrowed

#[path = "../support.rs"]
mod support;

use rrdma::block::{
    Refused,
    Request,
    Status, //
};
use support::Driver;

pub(crate) fn refuse(request: Request<Driver>) -> Result<(), Refused<Driver>> {
    let data = request.data();
    let _ = data;
    let refused = request.refuse(Status::Resource); //~
    #[cfg(misuse)]
    let _: () = *data;
    Err(refused)
}
