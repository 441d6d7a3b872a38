// SPDX-License-Identifier: GPL-2.0

//! `rnvmf reset`, `rnvmf rescan` and `rnvmf set`: verbs that change one controller.

use super::print::Printer;
use super::wait::{check_error, wait_op};
use crate::cli::{Device, Set};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::model::options::{ReconnectOptions, Settings};
use crate::output::{json_line, Format};
use crate::uapi::CtrlState;
use serde_json::json;

/// Finds the controller `name` and runs `op` on it. The message of an error begins with `verb`.
pub(super) fn on_controller<K: Kernel, T>(
    verb: &str,
    name: &str,
    kernel: &mut K,
    op: impl FnOnce(&Controller, &mut K) -> Result<T, Error>,
) -> Result<(Controller, T), Error> {
    let controllers = kernel.controllers()?;
    let found = Controller::find(name, &controllers).map_err(|error| error.context(verb))?;
    let context = |error: Error| error.context(format_args!("{verb} {}", found.device));
    let result = op(found, kernel).map_err(context)?;
    Ok((found.clone(), result))
}

/// Resets a controller and waits until it is live again. The kernel limits the time of its connect
/// attempt.
pub(super) fn reset(
    Device { device }: &Device,
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    let (controller, _) = on_controller("reset", device, kernel, |controller, kernel| {
        kernel.reset(controller.id)?;
        // After the request, so that every event and state is later than the reset.
        kernel.subscribe()?;
        wait_op(controller.id, kernel, is_reset)
    })?;
    printer.done(&controller.device, "reset")
}

fn is_reset(now: &Controller) -> Result<bool, Error> {
    if now.state.known() == Some(CtrlState::Live) {
        return Ok(true);
    }
    check_error(now, "; reconnecting continues")?;
    Ok(false)
}

/// Rescans the namespaces of a controller and waits until its disks match.
///
/// The kernel numbers the scans. The controller has the number of the last scan that ended.
pub(super) fn rescan(
    Device { device }: &Device,
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    let (_, now) = on_controller("rescan", device, kernel, |controller, kernel| {
        kernel.subscribe()?;
        let scan = kernel.rescan(controller.id)?;
        wait_op(controller.id, kernel, |now| is_scanned(now, scan))
    })?;
    let device = &now.device;
    let nr_namespaces = now.nr_namespaces.unwrap_or(0);
    let text = match (printer.format, nr_namespaces) {
        (Format::Json, count) => {
            json_line(&json!({"device": device, "nr_namespaces": count})) + "\n"
        }
        (Format::Normal, 1) => format!("{device}: 1 disk\n"),
        (Format::Normal, count) => format!("{device}: {count} disks\n"),
    };
    printer.print(&text)
}

fn is_scanned(now: &Controller, scan: u32) -> Result<bool, Error> {
    if let Some(CtrlState::Connecting | CtrlState::Resetting) = now.state.known() {
        check_error(now, "; the namespaces are scanned after the reconnect")?;
    }
    let is_done = now.scan.is_some_and(|done| done >= scan);
    if is_done {
        check_error(now, "")?;
    }
    Ok(is_done)
}

/// Changes settings of a controller.
pub(super) fn set(
    options: &Set,
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    let settings = Settings {
        reconnect: options.reconnect,
        connect_timeout: options.timeout.map(|seconds| seconds * 1000),
    };
    let set = |each: &Controller, kernel: &mut _| Kernel::set(kernel, each.id, &settings);
    let (before, ()) = on_controller("set", &options.device, kernel, set)?;
    let before_options = ReconnectOptions {
        reconnect_delay: before.reconnect_delay,
        ctrl_loss_tmo: before.ctrl_loss_tmo.map(|tmo| tmo.0),
        fast_io_fail_tmo: before.fast_io_fail_tmo.map(|tmo| tmo.0),
        cqt: before.cqt.map(|tmo| tmo.0),
    };
    if let Some(text) = settings.reconnect.ineffective(&before_options) {
        printer.warn(&text);
    }
    printer.done(&before.device, "set")
}

#[cfg(test)]
mod tests {
    mod rescan;
    mod reset;
    mod set;
}
