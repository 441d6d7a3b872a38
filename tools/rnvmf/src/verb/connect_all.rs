// SPDX-License-Identifier: GPL-2.0

//! `rnvmf connect-all`: connects the entries of a configuration file and the logs of discovery
//! controllers, all at once. A persistent run goes on with what the logs get later.

mod classify;
mod discoveries;
mod entry;
mod error_reports;
mod log_event;
mod state;
#[cfg(test)]
mod tests;

use crate::cli::{ConnectAll, DiscoverArgs, DiscoveryCtrlArgs};
use crate::config::{self, ConfigLine};
use crate::error::Error;
use crate::host::SystemEnv;
use crate::kernel::Kernel;
use crate::output::Format;
use state::{Mode, RunState};
use std::io::Write;

/// What the command line and the configuration file ask for.
pub(super) struct Config {
    lines: Vec<ConfigLine>,
    mode: Mode,
    format: Format,
}

impl Config {
    /// Reads the configuration file, unless the options name a discovery controller.
    pub(super) fn read(options: ConnectAll) -> Result<Self, Error> {
        let lines = match options.traddr {
            Some(traddr) => vec![ConfigLine::Discover(Box::new(DiscoverArgs {
                controller: DiscoveryCtrlArgs {
                    traddr,
                    nqn: options.nqn,
                    fabrics: options.fabrics,
                },
                ctrl: options.ctrl,
            }))],
            None => config::read(&options.config)?,
        };
        let mode = if options.persistent {
            Mode::Persistent
        } else {
            Mode::Once
        };
        Ok(Self {
            lines,
            mode,
            format: options.output.format,
        })
    }
}

/// Connects what is not connected, prints each result, and fails if one connection failed.
pub(super) fn run(
    config: &Config,
    env: &SystemEnv,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<(), Error> {
    let format = config.format;
    // Before the connects, so that no event of them can be missed.
    kernel.subscribe()?;
    let mut state = RunState::new(config.mode, &config.lines);
    state.start_entries(env, kernel);
    let mut printed = Ok(());
    loop {
        // The results of the end are printed below.
        if state.keeps_running() {
            state.disconnect_failed(kernel);
            printed = state.print(format, out, err);
        }
        if printed.is_err() || !state.is_active() {
            break;
        }
        state.wait(env, kernel);
    }
    if printed.is_err() {
        state.abort(&Error::failed("nobody reads what is told"), kernel);
    }
    state.remove_failed(kernel);
    printed?;
    state.print(format, out, err)?;
    state.result()
}
