// SPDX-License-Identifier: GPL-2.0

//! Waiting until controllers that are being removed are gone.

use crate::error::Error;
use crate::event::{Change, Event, Notice};
use crate::kernel::Kernel;
use std::time::Instant;

/// How the waiting ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
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
) -> Result<End, Error> {
    while !left.is_empty() {
        match kernel.next(Some(deadline))? {
            Notice::Event(Event::Controller(Change::Removed, gone)) => {
                left.retain(|&id| id != gone.id);
            }
            Notice::Event(_) | Notice::Discovered(..) => (),
            Notice::Lost => {
                let now = kernel.controllers()?;
                left.retain(|&id| now.iter().any(|each| each.id == id));
            }
            Notice::Interrupted => return Ok(End::Interrupted),
            Notice::Deadline => return Ok(End::Deadline),
        }
    }
    Ok(End::Gone)
}
