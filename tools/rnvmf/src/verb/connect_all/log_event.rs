// SPDX-License-Identifier: GPL-2.0

//! What is printed of discovery controllers and their logs, a line each.

use crate::cli::Format;
use crate::discovery::LogEntry;
use crate::kernel::Target;
use crate::render::json;
use serde::Serialize;

/// Something that is to be told.
pub(super) enum LogEvent {
    /// A log that is followed was read.
    Read {
        /// Whose it is.
        target: Target,
        /// Its generation.
        genctr: u64,
        /// How many entries it has.
        numrec: u64,
    },
    /// An entry is not connected, for this reason.
    Skipped(LogEntry, &'static str),
    /// An entry is in the log no more.
    Gone(LogEntry),
}

#[derive(Serialize)]
struct Followed<'a> {
    traddr: &'a str,
    trsvcid: u16,
    subsysnqn: &'a str,
}

/// Only what there is to say is there.
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
    /// The line, with its end.
    pub(super) fn render(&self, format: Format) -> String {
        match format {
            Format::Json => json::line(&self.document()) + "\n",
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
            Self::Skipped(entry, reason) => Document {
                skipped: Some(entry),
                reason: Some(reason),
                ..nothing
            },
            Self::Gone(entry) => Document {
                gone: Some(entry),
                ..nothing
            },
        }
    }

    fn normal(&self) -> String {
        let way = |entry: &LogEntry| {
            let (nqn, place) = (&entry.subnqn, entry.endpoint());
            format!("{nqn} at {} {place}", entry.trtype)
        };
        match self {
            Self::Read {
                target,
                genctr,
                numrec,
            } => {
                let records = if *numrec == 1 { "record" } else { "records" };
                let place = target.endpoint();
                format!("following {place}: {numrec} {records}, generation {genctr}")
            }
            Self::Skipped(entry, reason) => format!("not connected: {}: {reason}", way(entry)),
            Self::Gone(entry) => format!("offered no more: {}", way(entry)),
        }
    }
}
