// SPDX-License-Identifier: GPL-2.0

//! What a user asks of one controller and the kernel only starts: its state and its events tell how
//! it goes.

use crate::controller::Controller;
use crate::error::Error;
use crate::event::{Change, Event, WaitResult};
use crate::kernel::Kernel;

/// Waits until the controller is as `is_over` says, and returns it as it is then. The caller has
/// subscribed to events.
pub(super) fn finish(
    id: u32,
    kernel: &mut impl Kernel,
    is_over: impl Fn(&Controller) -> Result<bool, Error>,
) -> Result<Controller, Error> {
    let mut now = kernel.controller(id)?.ok_or_else(gone)?;
    while !is_over(&now)? {
        match kernel.next(None)? {
            WaitResult::Event(Event::Controller(Change::Removed, each)) if each.id == id => {
                return Err(gone())
            }
            WaitResult::Event(Event::Controller(_, each)) if each.id == id => now = *each,
            WaitResult::Lost => now = kernel.controller(id)?.ok_or_else(gone)?,
            WaitResult::Event(_) | WaitResult::Discovery(..) | WaitResult::Deadline => (),
            WaitResult::Interrupted => {
                return Err(Error::failed("interrupted; the kernel goes on with it"))
            }
        }
    }
    Ok(now)
}

/// Why it failed, and what comes of that.
pub(super) fn ctrl_error(controller: &Controller, more: &str) -> Error {
    match controller.error.clone() {
        Some(ctrl_error) => {
            let error = Error::from(ctrl_error);
            let message = format!("{}{more}", error.message);
            Error { message, ..error }
        }
        None => gone(),
    }
}

/// There is nothing to wait for any more.
pub(super) fn gone() -> Error {
    Error::failed("the controller was removed meanwhile")
}
