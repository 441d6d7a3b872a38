// SPDX-License-Identifier: GPL-2.0

//! The verbs: each sends its requests to the kernel and prints the answers.

mod args;
mod attempt;
mod connect;
mod connect_all;
mod disconnect;
mod discover;
mod doctor;
mod man;
mod monitor;
mod print;
mod rescan;
mod reset;
mod set;
mod show;
mod stats;
mod wait;

use crate::cli::Verb;
use crate::error::Error;
use crate::host::SystemEnv;
use crate::netlink::Client;
use std::io::{stderr, stdout};

/// Runs the verb of the command line.
pub(crate) fn run(verb: Verb) -> Result<(), Error> {
    let (out, err) = (&mut stdout().lock(), &mut stderr().lock());
    match verb {
        Verb::Connect(options) => {
            let args = args::connect_args(&options, &SystemEnv::default())?;
            connect::run(&options, &args, &mut Client::open()?, out, err)
        }
        Verb::ConnectAll(options) => {
            // Before the client, which loads the module: a wrong file is no reason for that.
            let config = connect_all::Config::read(options)?;
            let env = SystemEnv::default();
            connect_all::run(&config, &env, &mut Client::open()?, out, err)
        }
        Verb::Discover(options) => {
            discover::run(&options, &SystemEnv::default(), &mut Client::open()?, out)
        }
        Verb::Disconnect(options) => disconnect::run(&options, &mut Client::open()?, out, err),
        Verb::DisconnectAll(options) => disconnect::run_all(
            &options,
            &mut Client::open()?,
            &disconnect::in_use,
            out,
            err,
        ),
        Verb::Reset(options) => reset::run(&options, &mut Client::open()?, out),
        Verb::Rescan(options) => rescan::run(&options, &mut Client::open()?, out),
        Verb::Set(options) => set::run(&options, &mut Client::open()?, out, err),
        Verb::List(options) => show::run_list(&options, &mut Client::open()?, out),
        Verb::Show(options) => show::run(&options, &mut Client::open()?, out),
        Verb::Stats(options) => stats::run(&options, &mut Client::open()?, out),
        Verb::Monitor(options) => monitor::run(&options, &mut Client::open()?, out),
        Verb::Doctor(options) => doctor::run(&options, out),
        Verb::Completion(options) => man::completion(&options, out),
        Verb::Man(options) => man::run(&options, out),
    }
}
