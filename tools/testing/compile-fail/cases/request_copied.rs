// SPDX-License-Identifier: GPL-2.0

//! A request has one owner.
//!
//! refused: E0599: no method named `clone` found for struct `rrdma::block::Request<support::Driver>` in the current scope

#[path = "../support.rs"]
mod support;

use rrdma::block::{
    Request,
    Status, //
};
use support::Driver;

pub(crate) fn end(request: Request<Driver>) {
    #[cfg(misuse)]
    request.clone().complete(Status::Ok); //~
    request.complete(Status::Ok);
}
