// SPDX-License-Identifier: GPL-2.0

//! A request cannot be shared between threads.
//!
//! refused: E0277: cannot be shared between threads safely

#[path = "../support.rs"]
mod support;

use rrdma::block::{
    Request,
    Status, //
};
use support::Driver;

pub(crate) fn end(request: Request<Driver>) {
    fn sent<T: Send>(_: &T) {}
    fn shared<T: Sync>(_: &T) {}

    sent(&request);
    #[cfg(misuse)]
    shared(&request); //~
    request.complete(Status::Ok);
}
