// SPDX-License-Identifier: GPL-2.0

//! Prints results, warnings and errors.

use crate::error::Error;
use crate::output::{json_member, Format};
use serde_json::json;
use std::io::Write;

/// The output streams of a verb, and its output format.
pub(super) struct Printer<'a> {
    pub(super) format: Format,
    pub(super) out: &'a mut dyn Write,
    pub(super) err: &'a mut dyn Write,
}

impl Printer<'_> {
    /// Prints lines to the standard output, and flushes it because a reader may wait for them.
    pub(super) fn print(&mut self, lines: &str) -> Result<(), Error> {
        let written = self.out.write_all(lines.as_bytes());
        let written = written.and_then(|()| self.out.flush());
        written.map_err(|error| Error::from(error).context("standard output"))
    }

    /// Prints the name of a controller and, as text, what was done to it.
    pub(super) fn done(&mut self, device: &str, what: &str) -> Result<(), Error> {
        match self.format {
            Format::Json => self.print(&json_member("device", &device)),
            Format::Normal => self.print(&format!("{device}: {what}\n")),
        }
    }

    /// Prints an error; the verb continues.
    pub(super) fn error(&mut self, error: &Error) -> Result<(), Error> {
        let written = writeln!(self.err, "{}", error.render(self.format));
        written.map_err(|error| Error::from(error).context("standard error output"))
    }

    /// Prints a warning. The operation succeeded, so a failure to print is ignored.
    pub(super) fn warn(&mut self, message: &str) {
        let line = match self.format {
            Format::Normal => format!("rnvmf: warning: {message}\n"),
            Format::Json => json_member("warning", &json!({"message": message})),
        };
        let _ = self.err.write_all(line.as_bytes());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The outputs of a verb, and its result.
    pub(in crate::verb) struct Printed {
        pub(in crate::verb) out: String,
        pub(in crate::verb) err: String,
        pub(in crate::verb) end: Result<(), Error>,
    }

    impl Printed {
        /// Runs a verb and records its outputs.
        pub(in crate::verb) fn of(
            format: Format,
            run: impl FnOnce(&mut Printer<'_>) -> Result<(), Error>,
        ) -> Self {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let end = run(&mut Printer {
                format,
                out: &mut out,
                err: &mut err,
            });
            let text = |bytes| String::from_utf8(bytes).unwrap();
            Self {
                out: text(out),
                err: text(err),
                end,
            }
        }

        /// Returns the standard output of a verb that succeeded.
        pub(in crate::verb) fn output(self) -> Result<String, Error> {
            self.end.map(|()| self.out)
        }
    }
}
