// SPDX-License-Identifier: GPL-2.0

//! The configuration file of `connect-all`. A line has the options of one `rnvmf connect`, or of a
//! discovery controller whose subsystems are to be connected.

use crate::address::Address;
use crate::cli::{Connect, DiscoverArgs, SubsystemArgs};
use crate::error::{io_message, Error, Status};
use crate::usage::complaint;
use clap::{Args, Parser};
use std::collections::HashMap;
use std::fs::File;
use std::hash::Hash;
use std::io::{ErrorKind, Read};
use std::mem::discriminant;
use std::path::Path;

/// Largest size of the file in bytes.
const MAX_SIZE: u64 = 1 << 20;

/// The first word of a line with the options of a discovery controller.
const DISCOVER: &str = "discover";

/// A line of the file.
#[derive(Debug)]
pub(crate) enum ConfigLine {
    /// One connection.
    Connect(Box<Connect>),
    /// Connections to all subsystems in the log of a discovery controller.
    Discover(Box<DiscoverArgs>),
}

impl ConfigLine {
    /// Returns the subsystem that the line names.
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

/// The lines of a file.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    /// The valid lines.
    pub(crate) lines: Vec<ConfigLine>,
    /// An error for each line that is not valid.
    pub(crate) errors: Vec<Error>,
}

/// Reads the file. An invalid line is an error like an invalid command line, but hides no other
/// line. Fails if no line is valid.
pub(crate) fn read(path: &Path) -> Result<ConfigFile, Error> {
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
    let mut file = ConfigFile {
        lines: Vec::new(),
        errors: Vec::new(),
    };
    for line in parse(&bytes) {
        match line {
            Ok(line) => file.lines.push(line),
            Err(LineError { number, why }) => {
                let error = Error::new(Status::Usage, format!("{name}:{number}: {why}"));
                file.errors.push(error);
            }
        }
    }
    match (&file.lines[..], &file.errors[..]) {
        ([], [error, ..]) => Err(error.clone()),
        _ => Ok(file),
    }
}

/// The error of a line.
#[derive(Debug, PartialEq, Eq)]
struct LineError {
    /// Number of the line, from 1.
    number: usize,
    why: String,
}

/// Parses the lines of a file; comments may have any bytes. No two lines may name the same
/// subsystem, because the options of the second one would be ignored.
fn parse(bytes: &[u8]) -> Vec<Result<ConfigLine, LineError>> {
    // Some editors begin each text with a byte-order mark.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let lines = (1..).zip(lines);
    let mut numbers = HashMap::new();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with(b"#"))
        .map(|(number, line)| {
            let error = |why| LineError { number, why };
            let line = std::str::from_utf8(line).map_err(|_| error("not UTF-8".to_owned()))?;
            let line = parse_line(line).map_err(error)?;
            match numbers.insert(key(&line), number) {
                Some(other) => Err(error(format!("the same as line {other}"))),
                None => Ok(line),
            }
        })
        .collect()
}

/// Returns what two lines must not have in common.
fn key(line: &ConfigLine) -> impl Eq + Hash {
    let SubsystemArgs {
        traddr,
        nqn,
        fabrics,
    } = line.subsystem();
    // An address has many spellings.
    let address = traddr.parse::<Address>();
    (
        discriminant(line),
        address.map_or_else(|_| traddr.to_lowercase(), |address| address.to_string()),
        fabrics.trsvcid,
        nqn.to_owned(),
        fabrics.host_traddr.as_ref().map(Address::to_string),
        fabrics.hostnqn.clone(),
        fabrics.hostid,
    )
}

fn parse_line(line: &str) -> Result<ConfigLine, String> {
    let mut words = line.split_whitespace().peekable();
    if words.next_if_eq(&DISCOVER).is_some() {
        let args: DiscoverArgs = parse_args(words)?;
        return Ok(ConfigLine::Discover(args.into()));
    }
    let connect: Connect = parse_args(words)?;
    if connect.duplicate_connect {
        return Err("--duplicate-connect would connect another controller each time".into());
    }
    Ok(ConfigLine::Connect(connect.into()))
}

fn parse_args<'a, Options: Args>(words: impl Iterator<Item = &'a str>) -> Result<Options, String> {
    let parsed = LineParser::try_parse_from(words).map_err(|error| complaint(&error))?;
    Ok(parsed.options)
}

#[cfg(test)]
mod tests;
