// SPDX-License-Identifier: GPL-2.0

//! Output formats: text for people, JSON with a schema number for programs.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::{json, Value};

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

/// Returns the JSON document with the members of `body`, in one line without its end. Members that
/// are `None` are left out.
pub(crate) fn json_line(body: &impl Serialize) -> String {
    let schema = SCHEMA;
    let mut document = json!(Document { schema, body });
    remove_nulls(&mut document);
    document.to_string()
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(remove_nulls),
        _ => (),
    }
}

/// Returns the JSON document with one member, as a line with its end.
pub(crate) fn json_member(name: &str, value: &impl Serialize) -> String {
    json_line(&json!({ name: value })) + "\n"
}

/// Defines types for numbers that a specification names: by a list, or by an enum of the netlink
/// specification. Text and JSON have the name, or prefix and number if this program knows no name.
macro_rules! named {
    ($($(#[$doc:meta])* $kind:ident($raw:ty) = $prefix:literal $names:tt;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
        pub(crate) struct $kind(pub(crate) $raw);

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match $crate::output::named!(@find self.0, $names) {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!($prefix, "-{}"), self.0),
                }
            }
        }

        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
    (@find $raw:expr, [$($value:literal => $name:literal,)*]) => {
        match $raw {
            $($value => Some($name),)*
            _ => None,
        }
    };
    (@find $raw:expr, $enum:ident) => {
        $enum::from_raw($raw).map($enum::name)
    };
}
pub(crate) use named;
