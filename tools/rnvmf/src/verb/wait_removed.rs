// SPDX-License-Identifier: GPL-2.0

//! Waiting until controllers that are being removed are gone.

use crate::error::Error;
use crate::event::{Change, Event, WaitResult};
use crate::kernel::Kernel;
use std::time::Instant;

/// How the waiting ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RemoveResult {
    /// All are gone.
    Gone,
    /// The user stopped it.
    Interrupted,
    /// It took too long.
    Deadline,
}

/// Wait until the controllers with the numbers in `left` are gone; what remains in it are those that
/// are not.
pub(super) fn wait(
    kernel: &mut impl Kernel,
    left: &mut Vec<u32>,
    deadline: Instant,
) -> Result<RemoveResult, Error> {
    while !left.is_empty() {
        match kernel.next(Some(deadline))? {
            WaitResult::Event(Event::Controller(Change::Removed, gone)) => {
                left.retain(|&id| id != gone.id);
            }
            WaitResult::Event(_) | WaitResult::Discovery(..) => (),
            WaitResult::Lost => {
                let now = kernel.controllers()?;
                left.retain(|&id| now.iter().any(|each| each.id == id));
            }
            WaitResult::Interrupted => return Ok(RemoveResult::Interrupted),
            WaitResult::Deadline => return Ok(RemoveResult::Deadline),
        }
    }
    Ok(RemoveResult::Gone)
}
