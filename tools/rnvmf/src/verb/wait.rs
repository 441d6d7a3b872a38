// SPDX-License-Identifier: GPL-2.0

//! Waits for operations that the kernel only starts. A state or an event of the controller reports
//! their end.

use crate::error::{Error, Status};
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::model::event::{Change, Event, WaitResult};
use crate::model::options::Target;
use crate::uapi::CtrlState;
use std::time::{Duration, Instant};

/// Time beyond the kernel's own timeout to wait for the kernel's report of that timeout.
pub(super) const KERNEL_MARGIN: Duration = Duration::from_secs(5);

/// Returns the time at which a connect or a discovery that starts now must have ended in the
/// kernel.
pub(super) fn deadline(target: &Target) -> Instant {
    Instant::now() + Duration::from_millis(u64::from(target.connect_timeout)) + KERNEL_MARGIN
}

/// Returns the error for a passed [`deadline`]: the kernel's own timeout did not work.
pub(super) fn deadline_error() -> Error {
    Error::new(Status::Timeout, "timed out waiting for the kernel")
}

/// Waits until `is_done` returns true for the controller, and returns the controller in that state.
/// Fails if the controller is removed or dead. The caller has subscribed to events.
pub(super) fn wait_op(
    id: u32,
    kernel: &mut impl Kernel,
    is_done: impl Fn(&Controller) -> Result<bool, Error>,
) -> Result<Controller, Error> {
    let removed = || Error::failed("the controller was removed meanwhile");
    let mut now = kernel.controller(id)?.ok_or_else(removed)?;
    loop {
        match now.state.known() {
            Some(CtrlState::Deleting) => return Err(removed()),
            Some(CtrlState::Dead) => return check_error(&now, "").and(Err(removed())),
            _ if is_done(&now)? => return Ok(now),
            _ => (),
        }
        match kernel.wait(None)? {
            WaitResult::Event(Event::Controller(change, each)) if each.id == id => match change {
                Change::Removed => return Err(removed()),
                Change::Added | Change::Changed => now = *each,
            },
            WaitResult::EventsLost => now = kernel.controller(id)?.ok_or_else(removed)?,
            WaitResult::Event(_) | WaitResult::Discovery(_) | WaitResult::Deadline => (),
            WaitResult::Interrupted => {
                return Err(Error::failed("interrupted; the operation continues"))
            }
        }
    }
}

/// Fails with the error of a controller, if it has one. `next` says what the kernel does next.
pub(super) fn check_error(controller: &Controller, next: &str) -> Result<(), Error> {
    let Some(ctrl_error) = controller.error.clone() else {
        return Ok(());
    };
    let mut error = Error::from(ctrl_error);
    error.message.push_str(next);
    Err(error)
}

/// Waits until the controllers with the numbers in `remaining` are removed. On error `remaining`
/// has those that are not.
pub(super) fn wait_removed(
    kernel: &mut impl Kernel,
    remaining: &mut Vec<u32>,
    deadline: Instant,
) -> Result<(), Error> {
    while !remaining.is_empty() {
        wait_removal(kernel, remaining, deadline)?;
    }
    Ok(())
}

/// Waits for one event, and takes removed controllers out of `remaining`. The error status is `Timeout`
/// at the deadline.
pub(super) fn wait_removal(
    kernel: &mut impl Kernel,
    remaining: &mut Vec<u32>,
    deadline: Instant,
) -> Result<(), Error> {
    match kernel.wait(Some(deadline))? {
        WaitResult::Event(Event::Controller(Change::Removed, removed)) => {
            remaining.retain(|&id| id != removed.id);
        }
        WaitResult::Event(_) | WaitResult::Discovery(_) => (),
        WaitResult::EventsLost => {
            let now = kernel.controllers()?;
            remaining.retain(|&id| now.iter().any(|each| each.id == id));
        }
        WaitResult::Interrupted => return Err(Error::failed("interrupted")),
        WaitResult::Deadline => return Err(Error::new(Status::Timeout, "timed out")),
    }
    Ok(())
}
