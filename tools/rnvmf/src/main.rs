// SPDX-License-Identifier: GPL-2.0

//! `rnvmf`: connects and monitors NVMe over RDMA block devices of the rnvmf kernel module.
//!
//! Verbs (`verb`) send requests through the trait `kernel::Kernel`, which `netlink` implements.
//! `render` turns the replies into text or JSON.

mod address;
mod cli;
mod config;
mod doctor;
mod error;
mod host;
mod kernel;
mod model;
mod netlink;
mod output;
mod render;
mod signal;
mod usage;
mod verb;

use clap::Parser;
use cli::Arguments;
use rnvmf_uapi as uapi;
use signal_hook::low_level::emulate_default_handler;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Arguments { verb, format } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage::report(&error),
    };
    let Err(error) = verb::run(verb, format) else {
        return ExitCode::SUCCESS;
    };
    let Some(signal) = signal::last() else {
        return error.report(format);
    };
    let status = error.stopped_by(signal).report(format);
    // Shells and systemd check which signal ended a program. For SIGINT and SIGTERM the function
    // does not return.
    let _ = emulate_default_handler(signal);
    status
}
