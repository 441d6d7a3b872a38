// SPDX-License-Identifier: GPL-2.0

//! A completed request cannot be accessed.
//!
//! refused: E0382: borrow of moved value: `request`

#[path = "../support.rs"]
mod support;

use rrdma::block::{
    Request,
    Status, //
};
use support::Driver;

pub(crate) fn end(request: Request<Driver>) -> u32 {
    let bytes = request.bytes();
    request.complete(Status::Ok);
    #[cfg(misuse)]
    let bytes = request.bytes(); //~
    bytes
}
