// SPDX-License-Identifier: GPL-2.0

//! The configuration file of `connect-all`. A line has the options of one `rnvmf connect`, or those
//! of a discovery controller whose subsystems are to be connected.

use crate::address::Address;
use crate::cli::{Connect, DiscoverArgs, SubsystemArgs};
use crate::error::{io_message, Error, Status};
use crate::output::Format;
use crate::usage::complaint;
use clap::{Args, Parser};
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::mem::{discriminant, Discriminant};
use std::path::Path;
use uuid::Uuid;

/// Largest configuration file, in bytes.
const MAX_SIZE: u64 = 1 << 20;

/// The word that a line of a discovery controller begins with.
const DISCOVER: &str = "discover";

/// A line of the file.
#[derive(Debug)]
pub(crate) enum ConfigLine {
    /// One connection.
    Connect(Box<Connect>),
    /// All subsystems in the log of a discovery controller.
    Discover(Box<DiscoverArgs>),
}

impl ConfigLine {
    /// Returns the subsystem that it names.
    pub(crate) fn subsystem(&self) -> SubsystemArgs<'_> {
        match self {
            Self::Connect(options) => options.subsystem(),
            Self::Discover(args) => args.controller.subsystem(),
        }
    }
}

/// Parses the words of a line.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct LineParser<Options: Args> {
    #[command(flatten)]
    options: Options,
}

/// Reads a file. A wrong line is reported like a wrong command line.
pub(crate) fn read(path: &Path) -> Result<Vec<ConfigLine>, Error> {
    let name = path.display();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_SIZE + 1).read_to_end(&mut bytes));
    let read = read.map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::new(Status::Usage, format!("{name}: {}", io_message(&error))),
        _ => Error::from(error).context(&name),
    })?;
    if read as u64 > MAX_SIZE {
        let why = format!("{name}: more than {MAX_SIZE} bytes");
        return Err(Error::new(Status::Usage, why));
    }
    decode(&bytes).and_then(parse).map_err(|error| {
        let LineError { number, why } = error;
        Error::new(Status::Usage, format!("{name}:{number}: {why}"))
    })
}

/// What is wrong with a line of the file.
#[derive(Debug, PartialEq, Eq)]
struct LineError {
    /// Number of the line, from 1.
    number: usize,
    why: String,
}

/// Decodes the text of a file.
fn decode(bytes: &[u8]) -> Result<&str, LineError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.iter().take(error.valid_up_to());
        LineError {
            number: 1 + before.filter(|byte| **byte == b'\n').count(),
            why: "not UTF-8".to_owned(),
        }
    })
}

/// Parses the lines of a text.
fn parse(text: &str) -> Result<Vec<ConfigLine>, LineError> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let mut first = HashMap::new();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            let error = |why| LineError { number, why };
            let line = parse_line(line).map_err(error)?;
            match first.entry(LineKey::of(&line)) {
                Occupied(other) => Err(error(format!("the same as line {}", other.get()))),
                Vacant(entry) => {
                    entry.insert(number);
                    Ok(line)
                }
            }
        })
        .collect()
}

/// What two lines must not have in common: the other options of the second one would be ignored.
#[derive(PartialEq, Eq, Hash)]
struct LineKey {
    kind: Discriminant<ConfigLine>,
    traddr: String,
    trsvcid: u16,
    nqn: String,
    host_traddr: Option<String>,
    hostnqn: Option<String>,
    hostid: Option<Uuid>,
}

impl LineKey {
    fn of(line: &ConfigLine) -> Self {
        let SubsystemArgs {
            traddr,
            nqn,
            fabrics,
        } = line.subsystem();
        // An address has many spellings.
        let address = traddr.parse::<Address>();
        Self {
            kind: discriminant(line),
            traddr: address.map_or_else(|_| traddr.to_lowercase(), |address| address.to_string()),
            trsvcid: fabrics.trsvcid,
            nqn: nqn.to_owned(),
            host_traddr: fabrics.host_traddr.as_ref().map(ToString::to_string),
            hostnqn: fabrics.hostnqn.clone(),
            hostid: fabrics.hostid,
        }
    }
}

fn parse_line(line: &str) -> Result<ConfigLine, String> {
    let mut words = line.split_whitespace().peekable();
    if words.next_if_eq(&DISCOVER).is_some() {
        let args: DiscoverArgs = parse_args(words)?;
        return Ok(ConfigLine::Discover(args.into()));
    }
    let connect: Connect = parse_args(words)?;
    if connect.duplicate_connect {
        return Err("--duplicate-connect would connect one more each time".into());
    }
    if connect.output.format != Format::Normal {
        return Err("--output-format is for the command line".into());
    }
    Ok(ConfigLine::Connect(connect.into()))
}

fn parse_args<'a, Options: Args>(words: impl Iterator<Item = &'a str>) -> Result<Options, String> {
    let parsed = LineParser::try_parse_from(words).map_err(|error| complaint(&error))?;
    Ok(parsed.options)
}

#[cfg(test)]
mod tests;
