// SPDX-License-Identifier: GPL-2.0

//! `rnvmf rescan`: the kernel only starts a scan and numbers it. The controller has the number of
//! the last one that ended.

use super::print::print;
use super::wait::{op_error, removed_error, wait_op};
use crate::cli::Rescan;
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
    nr_namespaces: u32,
}

/// Rescans the namespaces of a controller, and waits until its disks match.
pub(super) fn run(
    options: &Rescan,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let name = &options.device;
    let controllers = kernel.controllers()?;
    let controller =
        Controller::find(name, &controllers).map_err(|error| error.context("rescan"))?;
    let device = controller.device.as_str();
    let now = rescan(controller.id, kernel)
        .map_err(|error| error.context(format_args!("rescan {device}")))?;
    let nr_namespaces = now.nr_namespaces.unwrap_or(0);
    let report = Document {
        device,
        nr_namespaces,
    };
    let text = match (options.output.format, nr_namespaces) {
        (Format::Json, _) => json_line(&report) + "\n",
        (Format::Normal, 1) => format!("{device}: 1 disk\n"),
        (Format::Normal, count) => format!("{device}: {count} disks\n"),
    };
    print(out, &text)
}

/// The controller when it is over.
fn rescan(id: u32, kernel: &mut impl Kernel) -> Result<Controller, Error> {
    kernel.subscribe()?;
    let number = kernel.rescan(id)?;
    // An event from before the request has a lower number.
    wait_op(id, kernel, |now| is_done(now, number))
}

/// Whether the scan of this number has ended; an error if it failed.
fn is_done(controller: &Controller, number: u32) -> Result<bool, Error> {
    match controller.state.known() {
        Some(CtrlState::Deleting) => return Err(removed_error()),
        Some(CtrlState::Dead) => return Err(op_error(controller, "")),
        Some(CtrlState::Connecting | CtrlState::Resetting) if controller.error.is_some() => {
            return Err(op_error(
                controller,
                "; the kernel looks when it has connected again",
            ))
        }
        _ => (),
    }
    match controller.scan {
        Some(done) if done >= number => match controller.error {
            Some(_) => Err(op_error(controller, "")),
            None => Ok(true),
        },
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests;
