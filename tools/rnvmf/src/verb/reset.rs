// SPDX-License-Identifier: GPL-2.0

//! `rnvmf reset`: the kernel only starts it, and the controller's state and events report its end.

use super::print::print;
use super::wait::{op_error, removed_error, wait_op};
use crate::cli::Reset;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::output::{json_line, Format};
use crate::uapi::CtrlState;
use serde::Serialize;
use std::io::Write;

#[derive(Serialize)]
struct Document<'a> {
    device: &'a str,
}

/// Resets a controller, and waits until it is live again.
pub(super) fn run(
    options: &Reset,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let name = &options.device;
    let controllers = kernel.controllers()?;
    let controller =
        Controller::find(name, &controllers).map_err(|error| error.context("reset"))?;
    let device = controller.device.as_str();
    reset(controller.id, kernel).map_err(|error| error.context(format_args!("reset {device}")))?;
    let text = match options.output.format {
        Format::Json => json_line(&Document { device }) + "\n",
        Format::Normal => format!("{device}: reset\n"),
    };
    print(out, &text)
}

/// The kernel bounds how long this takes by the time that it has to connect.
fn reset(id: u32, kernel: &mut impl Kernel) -> Result<(), Error> {
    kernel.reset(id)?;
    // After the request, so that every event and state is later than the reset.
    kernel.subscribe()?;
    wait_op(id, kernel, is_done).map(|_| ())
}

/// Whether the reset has ended; an error if it failed.
fn is_done(controller: &Controller) -> Result<bool, Error> {
    match controller.state.known() {
        Some(CtrlState::Live) => Ok(true),
        Some(CtrlState::Deleting) => Err(removed_error()),
        Some(CtrlState::Dead) => Err(op_error(controller, "")),
        // A state that this program does not know comes before one that it knows.
        Some(CtrlState::New | CtrlState::Connecting | CtrlState::Resetting) | None => {
            match controller.error {
                Some(_) => Err(op_error(controller, "; the kernel goes on to connect")),
                None => Ok(false),
            }
        }
    }
}

#[cfg(test)]
mod tests;
