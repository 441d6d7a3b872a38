// SPDX-License-Identifier: GPL-2.0

//! `rnvmf set`.

use super::args::reconnect_options;
use super::print::{print, warn};
use crate::cli::Set;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::model::options::{ReconnectOptions, Settings};
use crate::output::{json_line, Format};
use serde::Serialize;
use std::io::Write;

#[derive(Serialize)]
struct Document<'a> {
    device: &'a str,
}

/// Change settings of a controller.
pub(super) fn run(
    options: &Set,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<(), Error> {
    let name = &options.device;
    let controllers = kernel.controllers()?;
    let controller = Controller::find(name, &controllers).map_err(|error| error.context("set"))?;
    let device = controller.device.as_str();
    let (reconnect, format) = (reconnect_options(&options.reconnect), options.output.format);
    let settings = Settings {
        reconnect,
        connect_timeout: options.timeout.map(|seconds| seconds * 1000),
    };
    kernel
        .set(controller.id, &settings)
        .map_err(|error| error.context(format_args!("set {device}")))?;
    let now = ReconnectOptions {
        reconnect_delay: controller.reconnect_delay,
        ctrl_loss_tmo: controller.ctrl_loss_tmo.map(|tmo| tmo.0),
        fast_io_fail_tmo: controller.fast_io_fail_tmo.map(|tmo| tmo.0),
    };
    if let Some(text) = reconnect.ineffective(&now) {
        warn(&text, format, err);
    }
    let text = match format {
        Format::Json => json_line(&Document { device }) + "\n",
        Format::Normal => format!("{device}: set\n"),
    };
    print(out, &text)
}

#[cfg(test)]
mod tests;
