// SPDX-License-Identifier: GPL-2.0

//! The verbs: each asks the kernel and prints what it learned.

mod claim;
mod connect;
mod connect_all;
mod departure;
mod disconnect;
mod discover;
mod doctor;
mod document;
mod errand;
mod list;
mod monitor;
mod rescan;
mod reset;
mod set;
mod show;
mod stats;

use crate::cli::Verb;
use crate::error::Error;
use crate::host::Places;
use crate::netlink::Client;
use claim::is_claimed;
use std::io::{stderr, stdout, Write};

/// Do what the command line says.
pub(crate) fn run(verb: Verb) -> Result<(), Error> {
    let (out, err) = (&mut stdout().lock(), &mut stderr().lock());
    match verb {
        Verb::Connect(options) => {
            let wish = connect::wish(&options, &Places::default())?;
            connect::run(&options, &wish, &mut Client::open()?, out, err)
        }
        Verb::ConnectAll(options) => {
            // Before the module, which is not to be loaded for a file that is wrong.
            let orders = connect_all::orders(options)?;
            connect_all::run(&orders, &Places::default(), &mut Client::open()?, out, err)
        }
        Verb::Discover(options) => {
            discover::run(&options, &Places::default(), &mut Client::open()?, out)
        }
        Verb::Disconnect(options) => disconnect::run(&options, &mut Client::open()?, out, err),
        Verb::DisconnectAll(options) => {
            disconnect::all(&options, &mut Client::open()?, &is_claimed, out, err)
        }
        Verb::Reset(options) => reset::run(&options, &mut Client::open()?, out),
        Verb::Rescan(options) => rescan::run(&options, &mut Client::open()?, out),
        Verb::Set(options) => set::run(&options, &mut Client::open()?, out, err),
        Verb::List(options) => list::run(&options, &mut Client::open()?, out),
        Verb::Show(options) => show::run(&options, &mut Client::open()?, out),
        Verb::Stats(options) => stats::run(&options, &mut Client::open()?, out),
        Verb::Monitor(options) => monitor::run(&options, &mut Client::open()?, out),
        Verb::Doctor(options) => doctor::run(&options, out),
        Verb::Completion(options) => document::completion(&options, out),
        Verb::Man(options) => document::man(&options, out),
    }
}

/// Print now: who reads may be waiting for it.
fn print(out: &mut impl Write, text: &str) -> Result<(), Error> {
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Error::from(error).during("standard output"))
}
