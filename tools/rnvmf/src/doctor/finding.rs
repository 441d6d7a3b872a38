// SPDX-License-Identifier: GPL-2.0

//! The findings of the doctor.

use serde::Serialize;
use std::borrow::Cow;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// Nothing is wrong.
    Ok,
    /// It works, but perhaps not as it should.
    Warning,
    /// A connection cannot be made.
    Fault,
    /// It could not be probed.
    Unknown,
}

impl Level {
    /// Returns the name that is printed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Fault => "fault",
            Self::Unknown => "unknown",
        }
    }
}

/// A result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Name of the check.
    pub(crate) check: &'static str,
    /// How bad it is.
    pub(crate) level: Level,
    /// What is there, and why it is bad if it is.
    pub(crate) message: String,
    /// A shell command that fixes it.
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

    pub(super) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Level::Ok, message)
    }

    pub(super) fn warning(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Level::Warning, message)
    }

    pub(super) fn fault(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Level::Fault, message)
    }

    pub(super) fn unknown(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Level::Unknown, message)
    }

    pub(super) fn fix(self, command: impl Into<String>) -> Self {
        Self {
            fix: Some(command.into()),
            ..self
        }
    }
}

/// Quotes a name for a shell command where that is needed: an interface may have almost any name.
pub(super) fn shell_word(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@:/".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) {
        name.into()
    } else {
        format!("'{}'", name.replace('\'', r"'\''")).into()
    }
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn a_name_is_one_word() {
        for (name, quoted) in [
            ("eth0.7", "eth0.7"),
            ("eth0;reboot", "'eth0;reboot'"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(name), quoted);
        }
    }
}
