// SPDX-License-Identifier: GPL-2.0

//! A request is completed with a `Status`, not with a number.
//!
//! refused: E0308: mismatched types

#[path = "../support.rs"]
mod support;

use rrdma::block::{
    Request,
    Status, //
};
use support::Driver;

pub(crate) fn end(request: Request<Driver>) {
    #[cfg(misuse)]
    request.complete(0); //~
    #[cfg(not(misuse))]
    request.complete(Status::Ok);
}
