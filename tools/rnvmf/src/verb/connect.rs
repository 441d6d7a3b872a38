// SPDX-License-Identifier: GPL-2.0

//! `rnvmf connect`.

#[cfg(test)]
mod tests;

use super::args::connect_error;
use super::attempt::{wait_all, ConnectAttempt, Connected, IfExists};
use super::print::{print, warn};
use super::wait::deadline;
use crate::cli::Connect;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::model::options::{ConnectArgs, ReconnectOptions};
use crate::uapi::{CTRL_LOSS_TMO_DEFAULT, LOSS_TMO_NEVER, RECONNECT_DELAY_DEFAULT};
use std::io::Write;
use std::slice;

/// The kernel's defaults.
const DEFAULTS: ReconnectOptions = ReconnectOptions {
    reconnect_delay: Some(RECONNECT_DELAY_DEFAULT),
    ctrl_loss_tmo: Some(CTRL_LOSS_TMO_DEFAULT),
    fast_io_fail_tmo: Some(LOSS_TMO_NEVER),
};

/// Connects, and prints the name of the controller.
pub(super) fn run(
    options: &Connect,
    args: &ConnectArgs,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<(), Error> {
    let format = options.output.format;
    let connected = connect(options, args, kernel)
        .map_err(|error| connect_error(&args.target.endpoint(), error))?;
    // The options of a controller that existed are not changed.
    if let (Some(text), false) = (args.reconnect.ineffective(&DEFAULTS), connected.existed) {
        warn(&text, format, err);
    }
    print(out, &connected.report(format))?;
    // The controller is connected, even if nobody reads the warnings.
    let _ = err.write_all(connected.warnings(format).as_bytes());
    Ok(())
}

/// Connects, and waits until the controller is live.
fn connect(
    options: &Connect,
    args: &ConnectArgs,
    kernel: &mut impl Kernel,
) -> Result<Connected, Error> {
    let if_exists = if options.idempotent {
        IfExists::Accept
    } else {
        IfExists::Reject
    };
    // Before the connect, so that no event of it can be missed.
    kernel.subscribe()?;
    let mut attempt = ConnectAttempt::start(args, if_exists, kernel)?;
    wait_all(
        slice::from_mut(&mut attempt),
        deadline(&args.target),
        kernel,
    );
    attempt.finish()
}
