// SPDX-License-Identifier: GPL-2.0

//! JSON with the number of its schema.

use serde::Serialize;

/// Changes only when a program that reads the old form could fail on the new one.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a, T> {
    schema: u32,
    #[serde(flatten)]
    body: &'a T,
}

/// A document in one line.
pub(crate) fn line(body: &impl Serialize) -> String {
    // Serialising can fail on maps with keys that are no strings; there are no maps here.
    serde_json::to_string(&Document {
        schema: SCHEMA,
        body,
    })
    .unwrap_or_else(|error| unreachable!("{error}"))
}
