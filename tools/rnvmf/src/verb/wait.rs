// SPDX-License-Identifier: GPL-2.0

//! Waiting for what the kernel only starts: its end is a state or an event of the controller.

use crate::error::{Error, Status};
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::model::event::{Change, Event, WaitResult};
use crate::model::options::Target;
use std::time::{Duration, Instant};

/// How much longer than the kernel's own timeout to wait for the kernel's report of it.
pub(super) const KERNEL_MARGIN: Duration = Duration::from_secs(5);

/// Returns when a connect or a discovery that begins now must have ended in the kernel.
pub(super) fn deadline(target: &Target) -> Instant {
    Instant::now() + Duration::from_millis(u64::from(target.connect_timeout)) + KERNEL_MARGIN
}

/// The deadline passed, which is later than the kernel's own timeout.
pub(super) fn deadline_error() -> Error {
    Error::new(Status::Timeout, "the kernel did not finish in time")
}

/// Waits until `is_done` returns true for the controller, and returns its last state. The caller
/// has subscribed to events.
pub(super) fn wait_op(
    id: u32,
    kernel: &mut impl Kernel,
    is_done: impl Fn(&Controller) -> Result<bool, Error>,
) -> Result<Controller, Error> {
    let mut now = kernel.controller(id)?.ok_or_else(removed_error)?;
    while !is_done(&now)? {
        match kernel.wait(None)? {
            WaitResult::Event(Event::Controller(Change::Removed, each)) if each.id == id => {
                return Err(removed_error())
            }
            WaitResult::Event(Event::Controller(_, each)) if each.id == id => now = *each,
            WaitResult::EventsLost => now = kernel.controller(id)?.ok_or_else(removed_error)?,
            WaitResult::Event(_) | WaitResult::Discovery(_) | WaitResult::Deadline => (),
            WaitResult::Interrupted => {
                return Err(Error::failed("interrupted; the kernel goes on with it"))
            }
        }
    }
    Ok(now)
}

/// Returns the controller's error as the operation's, followed by what the kernel does next.
pub(super) fn op_error(controller: &Controller, next: &str) -> Error {
    match controller.error.clone() {
        Some(ctrl_error) => {
            let error = Error::from(ctrl_error);
            let message = format!("{}{next}", error.message);
            Error { message, ..error }
        }
        None => removed_error(),
    }
}

/// The controller is gone, so the operation cannot end.
pub(super) fn removed_error() -> Error {
    Error::failed("the controller was removed meanwhile")
}

/// How waiting for the removal of controllers ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RemoveResult {
    /// All are removed.
    Removed,
    /// The user stopped it.
    Interrupted,
    /// It took too long.
    Deadline,
}

/// Waits until the controllers with the numbers in `remaining` are gone. Those that are not remain
/// in it.
pub(super) fn wait_removed(
    kernel: &mut impl Kernel,
    remaining: &mut Vec<u32>,
    deadline: Instant,
) -> Result<RemoveResult, Error> {
    while !remaining.is_empty() {
        match kernel.wait(Some(deadline))? {
            WaitResult::Event(Event::Controller(Change::Removed, removed)) => {
                remaining.retain(|&id| id != removed.id);
            }
            WaitResult::Event(_) | WaitResult::Discovery(_) => (),
            WaitResult::EventsLost => {
                let now = kernel.controllers()?;
                remaining.retain(|&id| now.iter().any(|each| each.id == id));
            }
            WaitResult::Interrupted => return Ok(RemoveResult::Interrupted),
            WaitResult::Deadline => return Ok(RemoveResult::Deadline),
        }
    }
    Ok(RemoveResult::Removed)
}
