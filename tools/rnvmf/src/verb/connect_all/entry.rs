// SPDX-License-Identifier: GPL-2.0

//! What the lines of a file ask for: their names are resolved here.

use crate::address::{Address, Endpoint};
use crate::cli::DiscoverArgs;
use crate::config::ConfigLine;
use crate::error::Error;
use crate::host::SystemEnv;
use crate::kernel::{ConnectArgs, Target};
use crate::verb::connect::{connect_args, target};
use std::panic::resume_unwind;
use std::thread;

/// Names that are resolved at a time.
pub(super) const RESOLVERS: usize = 16;

/// A line of the file, and what it asks for.
pub(super) struct Entry<'a> {
    pub(super) line: &'a ConfigLine,
    /// None until its name is resolved.
    pub(super) goal: Option<Action<'a>>,
    /// Why it could not be, as it was told last.
    pub(super) told: Option<String>,
}

/// What a line asks for.
#[derive(Clone)]
pub(super) enum Action<'a> {
    Connect(ConnectArgs),
    Discovery(Target, &'a DiscoverArgs),
}

impl<'a> Entry<'a> {
    pub(super) fn new(line: &'a ConfigLine) -> Self {
        Self {
            line,
            goal: None,
            told: None,
        }
    }

    /// Whether nobody has to be asked for its address.
    pub(super) fn is_numeric(&self) -> bool {
        let (traddr, ..) = self.line.target();
        traddr.parse::<Address>().is_ok()
    }

    /// What it asks for; that may take long, if its address is a name.
    pub(super) fn resolve(&self, env: &SystemEnv) -> Result<Action<'a>, Error> {
        resolve(self.line, env)
    }
}

fn resolve<'a>(line: &'a ConfigLine, env: &SystemEnv) -> Result<Action<'a>, Error> {
    match line {
        ConfigLine::Connect(options) => connect_args(options, env).map(Action::Connect),
        ConfigLine::Discover(discover_args) => {
            let (traddr, nqn, fabrics) = line.target();
            match target(traddr, nqn, fabrics, env) {
                Ok(target) => Ok(Action::Discovery(target, discover_args)),
                Err(error) => Err(discover_error(
                    Endpoint::new(traddr, fabrics.trsvcid),
                    error,
                )),
            }
        }
    }
}

/// The same of several at the same time.
pub(super) fn resolve_all<'a>(
    entries: &[&mut Entry<'a>],
    env: &SystemEnv,
) -> Vec<Result<Action<'a>, Error>> {
    thread::scope(|scope| {
        let lines = entries.iter().map(|entry| entry.line);
        let asked: Vec<_> = lines
            .map(|line| scope.spawn(|| resolve(line, env)))
            .collect();
        let answers = asked.into_iter().map(|each| each.join());
        answers
            .map(|answer| answer.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

/// What is said of a discovery controller that could not be asked.
pub(super) fn discover_error(place: Endpoint, error: Error) -> Error {
    error.context(format_args!("discover at {place}"))
}
