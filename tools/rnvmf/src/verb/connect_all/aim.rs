// SPDX-License-Identifier: GPL-2.0

//! What the lines of a file ask for: their names are resolved here.

use crate::address::{Address, Endpoint};
use crate::cli::Seed;
use crate::connections::Line;
use crate::error::Error;
use crate::host::Places;
use crate::kernel::{Target, Wish};
use crate::verb::connect::{target, wish};
use std::panic::resume_unwind;
use std::thread;

/// Names that are resolved at a time.
pub(super) const RESOLVERS: usize = 16;

/// A line of the file, and what it asks for.
pub(super) struct Aim<'a> {
    pub(super) line: &'a Line,
    /// None until its name is resolved.
    pub(super) goal: Option<Goal<'a>>,
    /// Why it could not be, as it was told last.
    pub(super) told: Option<String>,
}

/// What a line asks for.
#[derive(Clone)]
pub(super) enum Goal<'a> {
    Connect(Wish),
    Search(Target, &'a Seed),
}

impl<'a> Aim<'a> {
    pub(super) fn new(line: &'a Line) -> Self {
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
    pub(super) fn resolve(&self, places: &Places) -> Result<Goal<'a>, Error> {
        resolve(self.line, places)
    }
}

fn resolve<'a>(line: &'a Line, places: &Places) -> Result<Goal<'a>, Error> {
    match line {
        Line::Connect(options) => wish(options, places).map(Goal::Connect),
        Line::Discover(seed) => {
            let (traddr, nqn, access) = line.target();
            match target(traddr, nqn, access, places) {
                Ok(target) => Ok(Goal::Search(target, seed)),
                Err(error) => Err(unfound(Endpoint::new(traddr, access.trsvcid), error)),
            }
        }
    }
}

/// The same of several at the same time.
pub(super) fn resolve_all<'a>(
    aims: &[&mut Aim<'a>],
    places: &Places,
) -> Vec<Result<Goal<'a>, Error>> {
    thread::scope(|scope| {
        let lines = aims.iter().map(|aim| aim.line);
        let asked: Vec<_> = lines
            .map(|line| scope.spawn(|| resolve(line, places)))
            .collect();
        let answers = asked.into_iter().map(|each| each.join());
        answers
            .map(|answer| answer.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

/// What is said of a discovery controller that could not be asked.
pub(super) fn unfound(place: Endpoint, error: Error) -> Error {
    error.during(format_args!("discover at {place}"))
}
