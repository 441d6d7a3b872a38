// SPDX-License-Identifier: GPL-2.0

//! `rnvmf connect-all`: connects the entries of a configuration file and the subsystems in
//! discovery logs, all at the same time. A persistent run also connects subsystems that are added
//! to the logs.

mod classify;
mod discoveries;
mod entry;
mod error_reports;
mod log_event;
mod state;
#[cfg(test)]
mod tests;

use super::print::Printer;
use crate::cli::{ConnectAll, DiscoverArgs, DiscoveryCtrlArgs};
use crate::config::{self, ConfigFile, ConfigLine};
use crate::error::Error;
use crate::host::SystemEnv;
use crate::kernel::Kernel;
use state::RunState;

/// The requests of the command line and the configuration file.
pub(super) struct Config {
    file: ConfigFile,
    is_persistent: bool,
}

impl Config {
    /// Reads the configuration file, unless the options name a discovery controller.
    pub(super) fn read(options: ConnectAll) -> Result<Self, Error> {
        let file = match options.traddr {
            Some(traddr) => ConfigFile {
                lines: vec![ConfigLine::Discover(Box::new(DiscoverArgs {
                    controller: DiscoveryCtrlArgs {
                        traddr,
                        nqn: options.nqn,
                        fabrics: options.fabrics,
                    },
                    ctrl: options.ctrl,
                }))],
                errors: Vec::new(),
            },
            None => config::read(&options.config)?,
        };
        Ok(Self {
            file,
            is_persistent: options.persistent,
        })
    }
}

/// Connects what is not connected and prints each result. Fails if a connection failed.
pub(super) fn run(
    config: &Config,
    env: &SystemEnv,
    kernel: &mut impl Kernel,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    // Before the connects, so that none of their events is missed.
    kernel.subscribe()?;
    let mut state = RunState::new(config.is_persistent, &config.file);
    state.start_entries(env, kernel);
    let mut printed = Ok(());
    loop {
        // At the end of the run the results are printed below.
        if state.keeps_running() {
            state.disconnect_failed(kernel);
            printed = state.print(printer);
        }
        if printed.is_err() || !state.is_active() {
            break;
        }
        state.wait(env, kernel);
    }
    if printed.is_err() {
        state.abort(&Error::failed("the output is closed"), kernel);
    }
    state.remove_failed(kernel);
    printed?;
    state.print(printer)?;
    state.result()
}
