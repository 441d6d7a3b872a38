// SPDX-License-Identifier: GPL-2.0

//! What stands in the way of a connection, and what to do about it: facts (`snapshot`) that are looked
//! up (`probe`), and what they mean (`diagnose`), which needs no kernel.

pub(crate) mod diagnose;
pub(crate) mod probe;
pub(crate) mod snapshot;

use serde::Serialize;
use std::borrow::Cow;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// Nothing is wrong.
    Ok,
    /// It works, but perhaps not as it should.
    Warning,
    /// A connection cannot be made.
    Fault,
    /// It could not be looked at.
    Unknown,
}

impl Level {
    /// As it is printed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Fault => "fault",
            Self::Unknown => "unknown",
        }
    }
}

/// A name as a word of a command for a shell: an interface may be called almost anything.
fn word(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@:/".contains(c);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.into(),
        false => format!("'{}'", name.replace('\'', r"'\''")).into(),
    }
}

/// What was found, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// What was looked at.
    pub(crate) check: &'static str,
    /// How bad it is.
    pub(crate) level: Level,
    /// What there is, and why that is bad where it is.
    pub(crate) message: String,
    /// The command that mends it, as it is to be typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<String>,
}

impl Finding {
    fn new(check: &'static str, level: Level, message: impl Into<String>) -> Self {
        Self {
            check,
            level,
            message: message.into(),
            fix: None,
        }
    }

    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Level::Ok, message)
    }

    fn warning(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Level::Warning, message)
    }

    fn fault(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Level::Fault, message)
    }

    fn unknown(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Level::Unknown, message)
    }

    fn fix(self, command: impl Into<String>) -> Self {
        Self {
            fix: Some(command.into()),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn a_name_is_one_word() {
        for (name, quoted) in [
            ("eth0.7", "eth0.7"),
            ("eth0;reboot", "'eth0;reboot'"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(word(name), quoted);
        }
    }
}
