// SPDX-License-Identifier: GPL-2.0

//! The timeout handler does not own the request.
//!
//! refused: E0277: a `RequestRef` does not own the request, so it cannot complete it

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
