// SPDX-License-Identifier: GPL-2.0

//! `queue_rq` cannot fail and keep the request: its error returns the request.
//!
//! refused: E0308: mismatched types

#[path = "../support.rs"]
mod support;

use rrdma::block::{
    Refused,
    Request,
    Status, //
};
use support::Driver;

pub(crate) fn queue_rq(request: Request<Driver>) -> Result<(), Refused<Driver>> {
    #[cfg(misuse)]
    return Err(Status::Resource); //~
    #[cfg(not(misuse))]
    Err(request.refuse(Status::Resource))
}
