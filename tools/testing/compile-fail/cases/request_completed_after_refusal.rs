// SPDX-License-Identifier: GPL-2.0

//! A refused request belongs to the block layer.
//!
//! refused: E0382: use of moved value: `request`

#[path = "../support.rs"]
mod support;

use rrdma::block::{
    Refused,
    Request,
    Status, //
};
use support::Driver;

pub(crate) fn refuse(request: Request<Driver>) -> Result<(), Refused<Driver>> {
    let refused = request.refuse(Status::Resource);
    #[cfg(misuse)]
    request.complete(Status::IoError); //~
    Err(refused)
}
