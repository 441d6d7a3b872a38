// SPDX-License-Identifier: GPL-2.0

//! How long a caller waits.

use super::{
    Deadline,
    Msecs, //
};

/// How long to wait for what takes several steps, and whether to go on.
#[derive(Clone, Copy)]
pub struct WaitLimits<'a> {
    /// The longest that one step may take for which somebody else only has to answer:
    /// finding the address, or the route; each call of a TCP socket.
    pub limit: Msecs,
    /// When all steps must be over.
    pub deadline: Deadline,
    /// Asked whenever the caller's completion fires; `true` aborts.
    pub cancelled: &'a dyn Fn() -> bool,
}

impl<'a> WaitLimits<'a> {
    /// For so long from now, of which one step may take all. Any context.
    pub fn new(total: Msecs, cancelled: &'a dyn Fn() -> bool) -> Self {
        Self {
            limit: total,
            deadline: Deadline::after(total),
            cancelled,
        }
    }
}
