// SPDX-License-Identifier: GPL-2.0

//! Output formats: text for people, JSON with a schema number for programs.

use clap::ValueEnum;
use serde::Serialize;

/// Changes only when a program that reads the old form could fail on the new one.
const SCHEMA: u32 = 1;

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Normal,
    /// For programs, with a stable schema.
    Json,
}

#[derive(Serialize)]
struct Document<'a, T> {
    schema: u32,
    #[serde(flatten)]
    body: &'a T,
}

/// Returns the JSON document of `body` in one line, without the line's end.
pub(crate) fn json_line(body: &impl Serialize) -> String {
    // Serialising can fail on maps with keys that are no strings; there are no maps here.
    serde_json::to_string(&Document {
        schema: SCHEMA,
        body,
    })
    .unwrap_or_else(|error| unreachable!("{error}"))
}
