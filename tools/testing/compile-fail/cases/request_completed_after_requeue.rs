// SPDX-License-Identifier: GPL-2.0

//! A requeued request cannot be completed.
//!
//! refused: E0382: use of moved value: `request`

#[path = "../support.rs"]
mod support;

use rrdma::block::{
    Request,
    Status, //
};
use support::Driver;

pub(crate) fn again(request: Request<Driver>) {
    request.requeue(None);
    #[cfg(misuse)]
    request.complete(Status::IoError); //~
}
