// SPDX-License-Identifier: GPL-2.0

//! A request is completed only once.
//!
//! refused: E0382: use of moved value: `request`

#[path = "../support.rs"]
mod support;

use rrdma::block::{
    Request,
    Status, //
};
use support::Driver;

pub(crate) fn end(request: Request<Driver>) {
    request.complete(Status::Ok);
    #[cfg(misuse)]
    request.complete(Status::Ok); //~
}
