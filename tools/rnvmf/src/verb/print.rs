// SPDX-License-Identifier: GPL-2.0

//! Prints results and warnings.

use crate::error::Error;
use crate::output::{json_line, Format};
use serde::Serialize;
use std::io::Write;

#[derive(Serialize)]
struct WarningDocument<'a> {
    warning: WarningBody<'a>,
}

#[derive(Serialize)]
struct WarningBody<'a> {
    message: &'a str,
}

/// Prints and flushes: a reader may be waiting for the line.
pub(super) fn print(out: &mut impl Write, text: &str) -> Result<(), Error> {
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Error::from(error).context("standard output"))
}

/// Prints a warning to the standard error output.
pub(super) fn warn(message: &str, format: Format, err: &mut impl Write) {
    let text = match format {
        Format::Normal => format!("rnvmf: warning: {message}"),
        Format::Json => json_line(&WarningDocument {
            warning: WarningBody { message },
        }),
    };
    // The operation succeeded, even if nobody reads the warning.
    let _ = writeln!(err, "{text}");
}
