// SPDX-License-Identifier: GPL-2.0

//! The findings of the doctor, and the shell commands that fix them.

use serde::Serialize;
use std::borrow::Cow;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// Nothing is wrong.
    Ok,
    /// A connection can be made, but something is not as it should be.
    Warning,
    /// A connection cannot be made.
    Fault,
    /// The check could not be made.
    Unknown,
}

impl Level {
    /// Returns the printed name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Fault => "fault",
            Self::Unknown => "unknown",
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Name of the check.
    pub(crate) check: &'static str,
    /// Severity.
    pub(crate) level: Level,
    /// What was found and, if it is a fault, its effect.
    pub(crate) message: String,
    /// A shell command that fixes it.
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

/// Returns the command that sets a network interface up.
pub(super) fn set_link_up(interface: &str) -> String {
    format!("ip link set {} up", shell_word(interface))
}

/// Quotes a word for a shell if it needs that: interface names may contain almost any character.
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
