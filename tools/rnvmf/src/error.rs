// SPDX-License-Identifier: GPL-2.0

//! What goes wrong, as the user sees it: one line and an exit status.

use crate::cli::Format;
use crate::ctrl_error::CtrlError;
use crate::render::json;
use libc::{SIGINT, SIGPIPE, SIGTERM};
use serde::Serialize;
use std::fmt;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Exit statuses; 0 is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    /// The operation was tried and failed.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// There is no such controller.
    NotFound = 3,
    /// The controller exists already.
    Exists = 4,
    /// It took too long.
    Timeout = 5,
    /// The caller may not do that.
    Permission = 6,
    /// The kernel module is not loaded.
    NoModule = 7,
    /// SIGINT asked it to stop, and ends it when all is undone and told.
    Interrupted = 128 + SIGINT as u8,
    /// SIGTERM did.
    Terminated = 128 + SIGTERM as u8,
    /// Nobody reads what is printed: as of a program that SIGPIPE ends, and without a word.
    BrokenPipe = 128 + SIGPIPE as u8,
}

impl Status {
    /// What several errors together end with: what all of them end with, or that it failed; none if
    /// there is none.
    pub(crate) fn common(mut all: impl Iterator<Item = Self>) -> Option<Self> {
        let first = all.next()?;
        Some(match all.all(|each| each == first) {
            true => first,
            false => Self::Failed,
        })
    }
}

/// An error with the sentence that explains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Error {
    /// The exit status it ends with.
    pub(crate) status: Status,
    /// The cause and, where there is something to do, what.
    pub(crate) message: String,
    /// What the kernel said of a controller that failed.
    pub(crate) ctrl_error: Option<Box<CtrlError>>,
}

/// The JSON form of an error.
#[derive(Serialize)]
struct ErrorDocument<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    status: u8,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a CtrlError>,
}

/// The JSON form of a warning.
#[derive(Serialize)]
struct WarningDocument<'a> {
    warning: WarningBody<'a>,
}

#[derive(Serialize)]
struct WarningBody<'a> {
    message: &'a str,
}

impl Error {
    /// An error of the given status.
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            ctrl_error: None,
        }
    }

    /// An operation that failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Status::Failed, message)
    }

    /// The kernel module is not there any more.
    pub(crate) fn unloaded() -> Self {
        Self::new(Status::NoModule, "the rnvmf module was unloaded")
    }

    /// Put what was being done before the cause.
    pub(crate) fn context(self, what: impl fmt::Display) -> Self {
        Self {
            message: format!("{what}: {}", self.message),
            ..self
        }
    }

    /// What a verb ends with that was asked to stop by a signal, and did not do all that it should.
    pub(crate) fn stopped_by(self, signal: i32) -> Self {
        let status = match (self.status, signal) {
            (Status::BrokenPipe, _) => Status::BrokenPipe,
            (_, SIGINT) => Status::Interrupted,
            _ => Status::Terminated,
        };
        Self { status, ..self }
    }

    /// Print the error to the standard error output, and give the exit status.
    pub(crate) fn report(&self, format: Format) -> ExitCode {
        if self.status != Status::BrokenPipe {
            // There is nobody to tell that nobody listens; the status says that it failed.
            let _ = writeln!(std::io::stderr(), "{}", self.render(format));
        }
        ExitCode::from(self.status as u8)
    }

    /// The error as one line.
    pub(crate) fn render(&self, format: Format) -> String {
        match format {
            Format::Normal => format!("rnvmf: {}", self.message),
            Format::Json => json::line(&ErrorDocument {
                error: ErrorBody {
                    status: self.status as u8,
                    message: &self.message,
                    failure: self.ctrl_error.as_deref(),
                },
            }),
        }
    }
}

/// Print what a user should know though nothing failed, to the standard error output of a verb.
pub(crate) fn warn(message: &str, format: Format, err: &mut impl Write) {
    let text = match format {
        Format::Normal => format!("rnvmf: warning: {message}"),
        Format::Json => json::line(&WarningDocument {
            warning: WarningBody { message },
        }),
    };
    // What was asked for is done, whoever listens.
    let _ = writeln!(err, "{text}");
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        let status = match error.kind() {
            ErrorKind::PermissionDenied => Status::Permission,
            ErrorKind::BrokenPipe => Status::BrokenPipe,
            _ => Status::Failed,
        };
        Self::new(status, io_message(&error))
    }
}

/// The text of an I/O error without the number that the standard library appends.
pub(crate) fn io_message(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// The text of an error number.
pub(crate) fn strerror(errno: i32) -> String {
    io_message(&std::io::Error::from_raw_os_error(errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_is_one_prefixed_line() {
        let error = Error::new(Status::Timeout, "no answer").context("connect to 10.0.0.9:4420");
        assert_eq!(
            error.render(Format::Normal),
            "rnvmf: connect to 10.0.0.9:4420: no answer"
        );
    }

    #[test]
    fn json_has_schema_and_status() {
        let error = Error::new(Status::NotFound, "no controller \"x\"");
        assert_eq!(
            error.render(Format::Json),
            r#"{"schema":1,"error":{"status":3,"message":"no controller \"x\""}}"#
        );
    }

    #[test]
    fn errors_of_files_have_their_status() {
        for (kind, status) in [
            (ErrorKind::PermissionDenied, Status::Permission),
            (ErrorKind::BrokenPipe, Status::BrokenPipe),
            (ErrorKind::NotFound, Status::Failed),
        ] {
            assert_eq!(Error::from(std::io::Error::from(kind)).status, status);
        }
        assert_eq!(Status::BrokenPipe as u8, 141);
    }

    #[test]
    fn several_errors_have_one_status() {
        use Status::{Failed, NotFound, Permission};
        for (all, status) in [
            (&[][..], None),
            (&[Permission], Some(Permission)),
            (&[NotFound, NotFound], Some(NotFound)),
            (&[NotFound, NotFound, Permission], Some(Failed)),
        ] {
            assert_eq!(Status::common(all.iter().copied()), status);
        }
    }

    #[test]
    fn who_is_asked_to_stop_ends_as_by_the_signal() {
        let failed = || Error::failed("connect-all: 1 of 2 connections failed");
        for (signal, status) in [(SIGINT, 130), (SIGTERM, 143)] {
            let stopped = failed().stopped_by(signal);
            assert_eq!(stopped.status as u8, status);
            assert_eq!(stopped.message, failed().message);
        }
        let unread = Error::new(Status::BrokenPipe, "Broken pipe");
        assert_eq!(unread.clone().stopped_by(SIGINT), unread);
    }

    #[test]
    fn errno_text_has_no_number() {
        assert_eq!(strerror(111), "Connection refused");
    }
}
