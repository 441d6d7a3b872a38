// SPDX-License-Identifier: GPL-2.0

//! The lines about discovery logs.

use crate::model::discovery::LogEntry;
use crate::model::options::Target;
use crate::output::{json_line, Format};
use serde::Serialize;

/// What happened to a discovery log, or why an entry is not connected. Members have their names in
/// JSON.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum LogEvent {
    /// The log of a followed discovery controller was read.
    Read {
        #[serde(serialize_with = "serialize_followed")]
        followed: Target,
        /// Generation counter.
        genctr: u64,
        /// Number of entries.
        numrec: u64,
    },
    /// An entry is not connected.
    Skipped {
        skipped: LogEntry,
        reason: &'static str,
    },
    /// An entry is no longer in the log.
    Removed { gone: LogEntry },
}

/// Serializes the members of a target that identify a discovery controller.
fn serialize_followed<S: serde::Serializer>(target: &Target, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Followed<'a> {
        traddr: &'a str,
        trsvcid: u16,
        subsysnqn: &'a str,
    }
    let Target {
        traddr,
        trsvcid,
        subsysnqn,
        ..
    } = target;
    Followed {
        traddr,
        trsvcid: *trsvcid,
        subsysnqn,
    }
    .serialize(to)
}

impl LogEvent {
    /// Returns the line.
    pub(super) fn render(&self, format: Format) -> String {
        let path =
            |entry: &LogEntry| format!("{} at {} {}", entry.subnqn, entry.trtype, entry.endpoint());
        match self {
            _ if format == Format::Json => json_line(self) + "\n",
            Self::Read {
                followed,
                genctr,
                numrec,
            } => {
                let records = if *numrec == 1 { "record" } else { "records" };
                let endpoint = followed.endpoint();
                format!("following {endpoint}: {numrec} {records}, generation {genctr}\n")
            }
            Self::Skipped { skipped, reason } => {
                format!("not connected: {}: {reason}\n", path(skipped))
            }
            Self::Removed { gone } => format!("removed from the log: {}\n", path(gone)),
        }
    }
}
