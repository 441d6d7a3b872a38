// SPDX-License-Identifier: GPL-2.0

//! The lines about discovery logs.

use crate::model::discovery::LogEntry;
use crate::model::options::Target;
use crate::output::{json_line, Format};
use serde::Serialize;

/// A change of a discovery log.
pub(super) enum LogEvent {
    /// A log was read that is followed.
    Read {
        /// Its discovery controller.
        target: Target,
        /// Its generation.
        genctr: u64,
        /// How many entries it has.
        numrec: u64,
    },
    /// An entry is not connected.
    Skipped {
        entry: LogEntry,
        reason: &'static str,
    },
    /// An entry is not in the log any more.
    Removed(LogEntry),
}

#[derive(Serialize)]
struct Followed<'a> {
    traddr: &'a str,
    trsvcid: u16,
    subsysnqn: &'a str,
}

/// The JSON document; a member that is none is left out.
#[derive(Default, Serialize)]
struct Document<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    followed: Option<Followed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    genctr: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numrec: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<&'a LogEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gone: Option<&'a LogEntry>,
}

impl LogEvent {
    /// Returns the line, with its end.
    pub(super) fn render(&self, format: Format) -> String {
        match format {
            Format::Json => json_line(&self.document()) + "\n",
            Format::Normal => self.normal() + "\n",
        }
    }

    fn document(&self) -> Document<'_> {
        let nothing = Document::default();
        match self {
            Self::Read {
                target,
                genctr,
                numrec,
            } => Document {
                followed: Some(Followed {
                    traddr: &target.traddr,
                    trsvcid: target.trsvcid,
                    subsysnqn: &target.subsysnqn,
                }),
                genctr: Some(*genctr),
                numrec: Some(*numrec),
                ..nothing
            },
            Self::Skipped { entry, reason } => Document {
                skipped: Some(entry),
                reason: Some(reason),
                ..nothing
            },
            Self::Removed(entry) => Document {
                gone: Some(entry),
                ..nothing
            },
        }
    }

    fn normal(&self) -> String {
        let path = |entry: &LogEntry| {
            let (nqn, addr) = (&entry.subnqn, entry.endpoint());
            format!("{nqn} at {} {addr}", entry.trtype)
        };
        match self {
            Self::Read {
                target,
                genctr,
                numrec,
            } => {
                let records = if *numrec == 1 { "record" } else { "records" };
                let endpoint = target.endpoint();
                format!("following {endpoint}: {numrec} {records}, generation {genctr}")
            }
            Self::Skipped { entry, reason } => format!("not connected: {}: {reason}", path(entry)),
            Self::Removed(entry) => format!("offered no more: {}", path(entry)),
        }
    }
}
