// SPDX-License-Identifier: GPL-2.0

//! `rnvmf discover`. The kernel only starts the discovery; an event reports that the log is read.

use super::args::{discover_error, target};
use super::print::Printer;
use super::wait::{deadline, deadline_error};
use crate::cli::Discover;
use crate::error::Error;
use crate::host::SystemEnv;
use crate::kernel::Kernel;
use crate::model::discovery::DiscoveryLog;
use crate::model::event::{DiscoveryEvent, WaitResult};
use crate::model::options::Target;
use crate::output::Format;
use crate::render::discovery;

/// Prints the log of a discovery controller.
pub(super) fn run(
    options: &Discover,
    env: &SystemEnv,
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    let subsystem = options.controller.subsystem();
    let log = target(&subsystem, env)
        .and_then(|target| read_log(&target, kernel))
        .map_err(|error| discover_error(&subsystem.endpoint(), error))?;
    printer.print(&match printer.format {
        Format::Normal => discovery::normal(&log),
        Format::Json => discovery::json(&log),
    })?;
    for (number, entry) in log.entries.iter().enumerate() {
        if let Some(why) = &entry.invalid {
            printer.warn(&format!("record {number}: {why}"));
        }
    }
    Ok(())
}

/// Starts a discovery and waits for its log. The kernel cancels the discovery when the program
/// ends.
fn read_log(target: &Target, kernel: &mut impl Kernel) -> Result<DiscoveryLog, Error> {
    // Before the discovery, so that its end is not missed.
    kernel.subscribe()?;
    let id = kernel.discover(target, None)?;
    let deadline = deadline(target);
    loop {
        match kernel.wait(Some(deadline))? {
            WaitResult::Discovery(event) if event.id != id => (),
            WaitResult::Discovery(DiscoveryEvent {
                error: Some(error), ..
            }) => return Err(*error),
            WaitResult::Discovery(_) | WaitResult::EventsLost => {
                if let Some(log) = kernel.discovery_log(id)? {
                    return Ok(log);
                }
            }
            WaitResult::Event(_) => (),
            WaitResult::Interrupted => return Err(Error::failed("interrupted")),
            WaitResult::Deadline => return Err(deadline_error()),
        }
    }
}

#[cfg(test)]
mod tests;
