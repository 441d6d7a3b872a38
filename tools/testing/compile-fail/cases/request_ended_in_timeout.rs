// SPDX-License-Identifier: GPL-2.0

//! The timeout handler does not own the request.
//!
//! refused: E0599: no method named `complete` found for reference `&RequestRef<support::Driver>` in the current scope

#[path = "../support.rs"]
mod support;

use rrdma::block::{
    RequestRef,
    Status,
    TimeoutAction, //
};
use support::Driver;

pub(crate) fn late(request: &RequestRef<Driver>) -> TimeoutAction {
    let _ = request.tag();
    #[cfg(misuse)]
    request.complete(Status::Timeout); //~
    TimeoutAction::Done
}
