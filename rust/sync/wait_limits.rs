// SPDX-License-Identifier: GPL-2.0

//! Time limits of operations.

use super::{
    Deadline,
    Msecs, //
};

/// Time limits of an operation with several steps, and its abort condition.
#[derive(Clone, Copy)]
pub struct WaitLimits<'a> {
    /// Time limit of a step that only needs an answer: resolving an address or a route, or one call
    /// of a TCP socket.
    pub limit: Msecs,
    /// Deadline of the whole operation.
    pub deadline: Deadline,
    /// Called when the caller's completion is completed; returns `true` to abort the operation. A step of the
    /// connection manager calls it every second, too, so it may also depend on the time.
    pub cancelled: &'a dyn Fn() -> bool,
}

impl<'a> WaitLimits<'a> {
    /// Returns limits with a deadline `total` from now, which one step may use up. Any context.
    pub fn new(total: Msecs, cancelled: &'a dyn Fn() -> bool) -> Self {
        Self {
            limit: total,
            deadline: Deadline::after(total),
            cancelled,
        }
    }

    /// Returns these limits with one step allowed to use all time up to the deadline. Any context.
    pub fn until_deadline(self) -> Self {
        Self {
            limit: self.deadline.left(),
            ..self
        }
    }
}
