// SPDX-License-Identifier: GPL-2.0

//! Output formats: text for people, JSON with a schema number for programs.

use clap::ValueEnum;
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the JSON output. A new one is needed only if a program that reads the old output
/// could fail on the new one.
const SCHEMA: u32 = 1;

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    Normal,
    /// JSON for programs, one document a line
    Json,
}

#[derive(Serialize)]
struct Document<'a, T> {
    schema: u32,
    #[serde(flatten)]
    body: &'a T,
}

/// Returns the JSON document with the members of `body`, in one line without its end.
pub(crate) fn json_line(body: &impl Serialize) -> String {
    let schema = SCHEMA;
    // Serialization fails on maps with other keys than strings only; this program has none.
    serde_json::to_string(&Document { schema, body })
        .unwrap_or_else(|error| unreachable!("{error}"))
}

/// Returns the JSON document with one member, as a line with its end.
pub(crate) fn json_member(name: &str, value: &impl Serialize) -> String {
    json_line(&BTreeMap::from([(name, value)])) + "\n"
}
