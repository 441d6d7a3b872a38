// SPDX-License-Identifier: GPL-2.0

//! The file of connections that are to be there: in each line the options of one `rnvmf connect`, or
//! of a discovery controller that knows of several.

use crate::address::Address;
use crate::cli::{Connect, DiscoverArgs, FabricsArgs, Format};
use crate::error::{io_message, Error, Status};
use crate::usage::complaint;
use clap::{Args, Parser};
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::HashMap;
use std::fs::File;
use std::hash::Hash;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// A larger file is none of connections.
const MAX_SIZE: u64 = 1 << 20;

/// The word that a line of a discovery controller begins with.
const DISCOVER: &str = "discover";

/// A line of the file.
#[derive(Debug)]
pub(crate) enum ConfigLine {
    /// One connection.
    Connect(Box<Connect>),
    /// All that a discovery controller knows of.
    Discover(Box<DiscoverArgs>),
}

impl ConfigLine {
    /// What it leads to: an address or a name, a subsystem, and the way there.
    pub(crate) fn target(&self) -> (&str, &str, &FabricsArgs) {
        match self {
            Self::Connect(options) => (&options.traddr, &options.nqn, &options.fabrics),
            Self::Discover(discover_args) => {
                let controller = &discover_args.controller;
                (&controller.traddr, &controller.nqn, &controller.fabrics)
            }
        }
    }
}

/// The words of a line.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct LineParser<Options: Args> {
    #[command(flatten)]
    options: Options,
}

/// The connections of a file; a wrong line is as a wrong command line.
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
    text(&bytes)
        .and_then(parse)
        .map_err(|(line, why)| Error::new(Status::Usage, format!("{name}:{line}: {why}")))
}

/// What a file says; or the number of its first line that is no text.
fn text(bytes: &[u8]) -> Result<&str, (usize, String)> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.iter().take(error.valid_up_to());
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        (line, "not UTF-8".to_owned())
    })
}

/// The connections of a text; or the number of a line, and what is wrong with it.
fn parse(text: &str) -> Result<Vec<ConfigLine>, (usize, String)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let mut first = HashMap::new();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            let line = options(line).map_err(|why| (number, why))?;
            match first.entry(aim(&line)) {
                Occupied(other) => Err((number, format!("the same as line {}", other.get()))),
                Vacant(place) => {
                    place.insert(number);
                    Ok(line)
                }
            }
        })
        .collect()
}

/// What only one line may lead to: the options of a second one would not be used.
fn aim(line: &ConfigLine) -> impl Hash + Eq {
    let (traddr, nqn, fabrics) = line.target();
    let what = matches!(line, ConfigLine::Discover(_));
    // An address has many spellings.
    let address = traddr.parse::<Address>();
    let at = address.map_or_else(|_| traddr.to_lowercase(), |address| address.to_string());
    let to = (what, at, fabrics.trsvcid, nqn.to_owned());
    let from = fabrics.host_traddr.as_ref().map(ToString::to_string);
    (to, from, fabrics.hostnqn.clone(), fabrics.hostid)
}

fn options(line: &str) -> Result<ConfigLine, String> {
    let mut words = line.split_whitespace().peekable();
    if words.next_if_eq(&DISCOVER).is_some() {
        let discover_args: DiscoverArgs = parse_args(words)?;
        return Ok(ConfigLine::Discover(discover_args.into()));
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
    let understood = LineParser::try_parse_from(words).map_err(|error| complaint(&error))?;
    Ok(understood.options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_known_by_its_line() {
        assert_eq!(text(b"# good\n"), Ok("# good\n"));
        assert_eq!(text(b"# good\n# B\xfcro\n"), Err((2, "not UTF-8".into())));
    }

    #[test]
    fn lines_are_options_of_connect() {
        let text = "# the first\n\n  -a 10.0.0.9 -n nqn.x\n\t# and\n-a fe80::1%rxe0\t-n  nqn.y -l -1 -s 4421";
        let read = parse(text).unwrap();
        let [ConfigLine::Connect(first), ConfigLine::Connect(second)] = &read[..] else {
            panic!("{read:?}");
        };
        assert_eq!((&*first.traddr, &*first.nqn), ("10.0.0.9", "nqn.x"));
        assert_eq!((&*second.traddr, &*second.nqn), ("fe80::1%rxe0", "nqn.y"));
        assert_eq!(
            (first.fabrics.trsvcid, second.fabrics.trsvcid),
            (4420, 4421)
        );
        assert_eq!(second.ctrl.reconnect.ctrl_loss_tmo, Some(-1));
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn a_line_may_be_of_a_discovery_controller() {
        let read = parse("discover -a 10.0.0.9 -s 8009 -k 30\n\tdiscover -a 10.0.0.8 -n nqn.own");
        let read = read.unwrap();
        let [ConfigLine::Discover(first), ConfigLine::Discover(second)] = &read[..] else {
            panic!("{read:?}");
        };
        let (at, ctrl) = (&first.controller, &first.ctrl);
        assert_eq!(at.nqn, "nqn.2014-08.org.nvmexpress.discovery");
        assert_eq!((at.fabrics.trsvcid, ctrl.keep_alive_tmo), (8009, Some(30)));
        let at = &second.controller;
        assert_eq!((&*at.traddr, &*at.nqn), ("10.0.0.8", "nqn.own"));
    }

    #[test]
    fn lines_differ_by_what_is_connected_to_what() {
        for other in [
            "-n nqn.y",
            "-n nqn.x -s 4421",
            "-n nqn.x -w 10.0.0.1",
            "-n nqn.x -q nqn.h",
        ] {
            let text = format!("-a 10.0.0.9 -n nqn.x\n-a 10.0.0.9 {other}\ndiscover -a 10.0.0.9");
            assert_eq!(parse(&text).unwrap().len(), 3, "{other}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_by_line() {
        for (text, line, why) in [
            (
                "\n-a 10.0.0.9",
                2,
                "the following required arguments were not provided: --nqn <NQN>",
            ),
            (
                "#\n#\nconnect -a 10.0.0.9 -n nqn.x",
                3,
                "unexpected argument 'connect' found",
            ),
            (
                "-a 10.0.0.9 -n nqn.x -D",
                1,
                "--duplicate-connect would connect one more each time",
            ),
            (
                "-a 10.0.0.9 -n nqn.x -o json",
                1,
                "--output-format is for the command line",
            ),
            (
                "discover",
                1,
                "the following required arguments were not provided: --traddr <ADDRESS>",
            ),
            (
                "discover -a 10.0.0.9 --idempotent",
                1,
                "unexpected argument '--idempotent' found",
            ),
            ("--help", 1, "unexpected argument '--help' found"),
            (
                "-a a.example -n nqn.x\n\n-i 2 -a A.example -n nqn.x",
                3,
                "the same as line 1",
            ),
            (
                "-a 2001:DB8::1 -n nqn.x\n-a 2001:db8:0::1 -n nqn.x -i 2",
                2,
                "the same as line 1",
            ),
            (
                "discover -a 10.0.0.9\ndiscover -a 10.0.0.9 -s 4420",
                2,
                "the same as line 1",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error, (line, why.to_owned()));
        }
    }

    #[test]
    fn the_file_is_named() {
        let error = read(Path::new("/nowhere/connections.conf")).unwrap_err();
        assert_eq!(
            error.message,
            "/nowhere/connections.conf: No such file or directory"
        );
        assert_eq!(error.status, Status::Usage);
        let error = read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.message, "/dev/zero: more than 1048576 bytes");
    }
}
