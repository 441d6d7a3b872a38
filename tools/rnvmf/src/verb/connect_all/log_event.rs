// SPDX-License-Identifier: GPL-2.0

//! The lines about discovery logs.

use crate::error::Error;
use crate::model::discovery::LogEntry;
use crate::model::options::Target;
use crate::output::{json_line, Format};
use crate::verb::print::Printer;
use serde_json::json;

/// What happened to a discovery log, or why an entry is not connected.
pub(super) enum LogEvent {
    /// The log of a followed discovery controller was read.
    Read {
        followed: Target,
        /// Generation counter.
        genctr: u64,
        /// Number of entries.
        numrec: u64,
    },
    /// An entry is not connected.
    Skipped { skipped: LogEntry, reason: String },
    /// An entry is no longer in the log.
    Removed { gone: LogEntry },
}

impl LogEvent {
    /// Prints the line. That an entry is not valid is a warning.
    pub(super) fn print(&self, printer: &mut Printer<'_>) -> Result<(), Error> {
        if matches!(self, Self::Skipped { skipped, .. } if skipped.invalid.is_some()) {
            printer.warn(self.normal().trim_end());
            if printer.format == Format::Normal {
                return Ok(());
            }
        }
        printer.print(&self.render(printer.format))
    }

    /// Returns the line.
    pub(super) fn render(&self, format: Format) -> String {
        match format {
            Format::Json => self.json() + "\n",
            Format::Normal => self.normal(),
        }
    }

    fn json(&self) -> String {
        json_line(&match self {
            Self::Read {
                followed,
                genctr,
                numrec,
            } => json!({
                "followed": {
                    "traddr": followed.traddr,
                    "trsvcid": followed.trsvcid,
                    "subsysnqn": followed.subsysnqn,
                },
                "genctr": genctr,
                "numrec": numrec,
            }),
            Self::Skipped { skipped, reason } => json!({"skipped": skipped, "reason": reason}),
            Self::Removed { gone } => json!({"gone": gone}),
        })
    }

    fn normal(&self) -> String {
        let path =
            |entry: &LogEntry| format!("{} at {} {}", entry.subnqn, entry.trtype, entry.endpoint());
        match self {
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
