// SPDX-License-Identifier: GPL-2.0

//! A nested netlink message cannot be moved into another message.
//!
//! refused: E0521: borrowed data escapes outside of closure
//! refused: E0521: borrowed data escapes outside of function

use kernel::prelude::*;
use rrdma::netlink::Message;

pub(crate) fn fill(message: &mut Message<'_>, other: &mut Message<'_>) -> Result {
    other.put_u8(1, 0)?;
    message.nest(2, |nested| {
        #[cfg(misuse)]
        core::mem::swap(nested, other); //~
        nested.put_u8(3, 0)
    })
}
