// SPDX-License-Identifier: GPL-2.0

//! Only the block layer creates requests.
//!
//! refused: E0451: field `inner` of struct `rrdma::block::Request` is private

#[path = "../support.rs"]
mod support;

use rrdma::block::{
    Request,
    RequestRef,
    Status, //
};
use support::Driver;

pub(crate) fn own(request: Request<Driver>, other: RequestRef<Driver>) {
    #[cfg(misuse)]
    let request = Request { inner: other }; //~
    request.complete(Status::Ok);
}
