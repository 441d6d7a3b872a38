// SPDX-License-Identifier: GPL-2.0

//! The verbs. Each sends requests to the kernel and prints the replies.

mod args;
mod attempt;
mod change;
mod connect;
mod connect_all;
mod disconnect;
mod discover;
mod doctor;
mod man;
mod monitor;
mod print;
mod show;
mod stats;
mod wait;

use crate::cli::Verb;
use crate::error::Error;
use crate::host::SystemEnv;
use crate::netlink::Client;
use crate::output::Format;
use print::Printer;
use std::io::{stderr, stdout};

/// Runs the verb of the command line.
pub(crate) fn run(verb: Verb, format: Format) -> Result<(), Error> {
    let printer = &mut Printer {
        format,
        out: &mut stdout().lock(),
        err: &mut stderr().lock(),
    };
    let env = &SystemEnv::default();
    match verb {
        Verb::Connect(options) => {
            let args = connect::connect_args(&options, env)?;
            connect::run(&options, &args, &mut Client::open()?, printer)
        }
        Verb::ConnectAll(options) => {
            // Before opening the client, which loads the module, because the file may be invalid.
            let config = connect_all::Config::read(options)?;
            connect_all::run(&config, env, &mut Client::open()?, printer)
        }
        Verb::Discover(options) => discover::run(&options, env, &mut Client::open()?, printer),
        Verb::Disconnect(options) => disconnect::run(&options, &mut Client::open()?, printer),
        Verb::DisconnectAll(options) => {
            disconnect::run_all(&options, &mut Client::open()?, printer)
        }
        Verb::Reset(device) => change::reset(&device, &mut Client::open()?, printer),
        Verb::Rescan(device) => change::rescan(&device, &mut Client::open()?, printer),
        Verb::Set(options) => change::set(&options, &mut Client::open()?, printer),
        Verb::List => show::list(&mut Client::open()?, printer),
        Verb::Show(options) => show::show(&options, &mut Client::open()?, printer),
        Verb::Stats(options) => stats::run(&options, &mut Client::open()?, printer),
        Verb::Monitor => monitor::run(&mut Client::open()?, printer),
        Verb::Doctor(options) => doctor::run(&options, printer),
        Verb::Completion(options) => man::completion(&options, printer),
        Verb::Man(options) => man::man(&options, printer),
    }
}
