// SPDX-License-Identifier: GPL-2.0

//! `rnvmf connect`.

#[cfg(test)]
mod tests;

use super::args::{connect_error, target};
use super::attempt::{wait_all, ConnectAttempt, Connected, IfExists};
use super::print::Printer;
use super::wait::deadline;
use crate::cli::Connect;
use crate::error::Error;
use crate::host::SystemEnv;
use crate::kernel::Kernel;
use crate::model::options::{ConnectArgs, ReconnectOptions};
use crate::uapi::{CTRL_LOSS_TMO_DEFAULT, LOSS_TMO_NEVER, RECONNECT_DELAY_DEFAULT};
use std::slice;

/// The kernel's defaults.
const DEFAULTS: ReconnectOptions = ReconnectOptions {
    reconnect_delay: Some(RECONNECT_DELAY_DEFAULT),
    ctrl_loss_tmo: Some(CTRL_LOSS_TMO_DEFAULT),
    fast_io_fail_tmo: Some(LOSS_TMO_NEVER),
    cqt: None,
};

/// Converts the options to the arguments of the kernel: resolves the address of the target.
pub(super) fn connect_args(options: &Connect, env: &SystemEnv) -> Result<ConnectArgs, Error> {
    let subsystem = options.subsystem();
    let target =
        target(&subsystem, env).map_err(|error| connect_error(&subsystem.endpoint(), error))?;
    Ok(ConnectArgs {
        target,
        ctrl: options.ctrl.clone(),
        duplicate_connect: options.duplicate_connect,
    })
}

/// Connects a controller and prints its name.
pub(super) fn run(
    options: &Connect,
    args: &ConnectArgs,
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    let connected = connect(options, args, kernel)
        .map_err(|error| connect_error(&args.target.endpoint(), error))?;
    // A controller that existed keeps its options.
    if let (Some(text), false) = (
        args.ctrl.reconnect.ineffective(&DEFAULTS),
        connected.existed,
    ) {
        printer.warn(&text);
    }
    connected.print(printer)
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
    // Before the connect, so that none of its events is missed.
    kernel.subscribe()?;
    let mut attempt = ConnectAttempt::start(args, if_exists, kernel)?;
    let deadline = deadline(&args.target);
    wait_all(slice::from_mut(&mut attempt), deadline, kernel);
    attempt.finish()
}
