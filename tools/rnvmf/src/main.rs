// SPDX-License-Identifier: GPL-2.0

//! `rnvmf`: connect and watch NVMe over RDMA block devices of the rnvmf kernel module.
//!
//! The kernel is reached through generic netlink only (`netlink`), behind the trait `kernel::Kernel`;
//! verbs (`verb`) are written against that trait, and what they print is made by pure functions
//! (`render`).

mod address;
mod cli;
mod config;
mod controller;
mod ctrl_error;
mod discovery;
mod doctor;
mod error;
mod event;
mod host;
mod kernel;
mod namespace;
mod netlink;
mod render;
mod stats;
mod uapi;
mod usage;
mod verb;

use clap::Parser;
use signal_hook::low_level::emulate_default_handler;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match cli::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage::report(&error),
    };
    let format = arguments.verb.format();
    let Err(error) = verb::run(arguments.verb) else {
        return ExitCode::SUCCESS;
    };
    let Some(signal) = netlink::stop_signal() else {
        return error.report(format);
    };
    let status = error.stopped_by(signal).report(format);
    // Shells and systemd look at what ended a program, to know whether it is what they asked for. It does
    // not return.
    let _ = emulate_default_handler(signal);
    status
}
