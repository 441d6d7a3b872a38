// SPDX-License-Identifier: GPL-2.0

//! The verbs: each asks the kernel and prints what it learned.

mod connect;
mod connect_all;
mod disconnect;
mod discover;
mod doctor;
mod in_use;
mod list;
mod man;
mod monitor;
mod rescan;
mod reset;
mod set;
mod show;
mod stats;
mod wait_op;
mod wait_removed;

use crate::cli::Verb;
use crate::error::Error;
use crate::host::SystemEnv;
use crate::netlink::Client;
use in_use::in_use;
use std::io::{stderr, stdout, Write};

/// Do what the command line says.
pub(crate) fn run(verb: Verb) -> Result<(), Error> {
    let (out, err) = (&mut stdout().lock(), &mut stderr().lock());
    match verb {
        Verb::Connect(options) => {
            let connect_args = connect::connect_args(&options, &SystemEnv::default())?;
            connect::run(&options, &connect_args, &mut Client::open()?, out, err)
        }
        Verb::ConnectAll(options) => {
            // Before the module, which is not to be loaded for a file that is wrong.
            let config = connect_all::config(options)?;
            connect_all::run(
                &config,
                &SystemEnv::default(),
                &mut Client::open()?,
                out,
                err,
            )
        }
        Verb::Discover(options) => {
            discover::run(&options, &SystemEnv::default(), &mut Client::open()?, out)
        }
        Verb::Disconnect(options) => disconnect::run(&options, &mut Client::open()?, out, err),
        Verb::DisconnectAll(options) => {
            disconnect::all(&options, &mut Client::open()?, &in_use, out, err)
        }
        Verb::Reset(options) => reset::run(&options, &mut Client::open()?, out),
        Verb::Rescan(options) => rescan::run(&options, &mut Client::open()?, out),
        Verb::Set(options) => set::run(&options, &mut Client::open()?, out, err),
        Verb::List(options) => list::run(&options, &mut Client::open()?, out),
        Verb::Show(options) => show::run(&options, &mut Client::open()?, out),
        Verb::Stats(options) => stats::run(&options, &mut Client::open()?, out),
        Verb::Monitor(options) => monitor::run(&options, &mut Client::open()?, out),
        Verb::Doctor(options) => doctor::run(&options, out),
        Verb::Completion(options) => man::completion(&options, out),
        Verb::Man(options) => man::man(&options, out),
    }
}

/// Print now: who reads may be waiting for it.
fn print(out: &mut impl Write, text: &str) -> Result<(), Error> {
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Error::from(error).context("standard output"))
}
