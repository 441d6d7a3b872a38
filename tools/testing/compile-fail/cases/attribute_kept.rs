// SPDX-License-Identifier: GPL-2.0

//! Attributes of a netlink request cannot be kept longer than the request.
//!
//! refused: E0521: borrowed data escapes outside of function

use kernel::prelude::*;
use rrdma::netlink::Request;

pub(crate) fn handle(request: &mut Request<'_>, keep: fn(&'static str)) -> Result {
    let text = request.required_str(1)?; //~
    let _ = text.len();
    #[cfg(misuse)]
    keep(text);
    Ok(())
}
