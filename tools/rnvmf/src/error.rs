// SPDX-License-Identifier: GPL-2.0

//! Errors of the program, with their exit status, and errors of controllers from the kernel.

use crate::output::{json_line, named, Format};
use crate::uapi::ErrorStage;
use libc::{SIGINT, SIGPIPE, SIGTERM};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Exit statuses; 0 is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    /// The operation failed.
    Failed = 1,
    /// The command line or the file of connect-all is invalid.
    Usage = 2,
    /// There is no such controller.
    NotFound = 3,
    /// The controller exists already.
    Exists = 4,
    /// The operation timed out.
    Timeout = 5,
    /// Permission denied.
    Permission = 6,
    /// The kernel module is not loaded.
    NoModule = 7,
    /// SIGINT stopped the operation. The program undoes and prints what is left, and then terminates
    /// by that signal.
    Interrupted = 128 + SIGINT as u8,
    /// SIGTERM stopped the operation; as for `Interrupted`.
    Terminated = 128 + SIGTERM as u8,
    /// The reader closed the standard output; the status of a program that SIGPIPE terminates.
    BrokenPipe = 128 + SIGPIPE as u8,
}

impl Status {
    /// Returns the status for several errors: the common one, or `Failed`. `None` without errors.
    pub(crate) fn common(mut all: impl Iterator<Item = Self>) -> Option<Self> {
        let first = all.next()?;
        let same = all.all(|each| each == first);
        Some(if same { first } else { Self::Failed })
    }
}

/// An error of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Error {
    /// The exit status.
    pub(crate) status: Status,
    /// The cause, and what to do about it.
    pub(crate) message: String,
    /// The error of the controller or the discovery.
    pub(crate) ctrl_error: Option<Box<CtrlError>>,
    /// The error number of a request that the kernel rejected.
    pub(crate) errno: Option<i32>,
}

impl Error {
    /// Returns an error with a status.
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            ctrl_error: None,
            errno: None,
        }
    }

    /// Returns an error with the status `Failed`.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Status::Failed, message)
    }

    /// Returns the error for a message that violates the specification.
    pub(crate) fn malformed(why: impl fmt::Display) -> Self {
        Self::failed(format!("the kernel sent a malformed message: {why}"))
    }

    /// Returns the error for a module that was unloaded meanwhile.
    pub(crate) fn unloaded() -> Self {
        Self::new(Status::NoModule, "the rnvmf module was unloaded")
    }

    /// Prepends the failed operation to the message.
    pub(crate) fn context(self, what: impl fmt::Display) -> Self {
        Self {
            message: format!("{what}: {}", self.message),
            ..self
        }
    }

    /// Returns the error of a verb that a signal stopped before it was complete.
    pub(crate) fn stopped_by(self, signal: i32) -> Self {
        let status = match (self.status, signal) {
            (Status::BrokenPipe, _) => Status::BrokenPipe,
            (_, SIGINT) => Status::Interrupted,
            _ => Status::Terminated,
        };
        Self { status, ..self }
    }

    /// Prints the error to the standard error output, and returns the exit status.
    pub(crate) fn report(&self, format: Format) -> ExitCode {
        if self.status != Status::BrokenPipe {
            // Best effort: the exit status reports the error, too.
            let _ = writeln!(std::io::stderr(), "{}", self.render(format));
        }
        ExitCode::from(self.status as u8)
    }

    /// Returns the error in one line without its end.
    pub(crate) fn render(&self, format: Format) -> String {
        match format {
            Format::Normal => format!("rnvmf: {}", self.message),
            Format::Json => json_line(&json!({"error": {
                "status": self.status as u8,
                "message": self.message,
                "failure": self.ctrl_error,
            }})),
        }
    }
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

/// Returns the text of an I/O error without the number that the standard library appends.
pub(crate) fn io_message(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

named! {
    /// What a controller or a discovery was doing when it failed.
    Stage(u32) = "stage" ErrorStage;
}

/// The last error of a controller or a discovery.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct CtrlError {
    /// Where it failed.
    pub(crate) stage: Stage,
    /// The error number, positive.
    pub(crate) errno: i32,
    /// The cause in words.
    pub(crate) message: String,
    /// Reason of a reject by the connection manager of the peer.
    pub(crate) reject_reason: Option<u32>,
    /// NVMe/RDMA status in the private data of the reject.
    pub(crate) cm_status: Option<u16>,
    /// Status field of the failed command.
    pub(crate) nvme_status: Option<u16>,
    /// The queue that failed.
    pub(crate) qid: Option<u16>,
    /// Milliseconds since the failure.
    #[serde(skip_serializing)]
    pub(crate) age: Option<u32>,
    /// The controller has become live since.
    #[serde(default, skip_serializing)]
    pub(crate) over: bool,
    /// A command was sent, and the target did not respond in time.
    #[serde(default, skip_serializing)]
    pub(crate) unanswered: bool,
    /// Milliseconds until a persistent discovery connects again.
    pub(crate) next_attempt: Option<u32>,
}

impl CtrlError {
    /// Whether a discovery failed because the subsystem has no discovery log.
    pub(crate) fn is_no_discovery(&self) -> bool {
        self.errno == libc::EOPNOTSUPP && self.stage.0 == ErrorStage::Discovery as u32
    }

    /// Whether the target did not respond to an Identify command. The first one is the first
    /// command with large data.
    pub(crate) fn is_identify_unanswered(&self) -> bool {
        self.unanswered && self.stage.0 == ErrorStage::Identify as u32
    }

    /// Whether a persistent discovery failed because the discovery controller has no events for log
    /// changes.
    pub(crate) fn has_no_events(&self) -> bool {
        self.errno == libc::EOPNOTSUPP && self.stage.0 == ErrorStage::Enable as u32
    }
}

impl From<CtrlError> for Error {
    fn from(ctrl_error: CtrlError) -> Self {
        let status = match ctrl_error.errno {
            libc::ETIMEDOUT => Status::Timeout,
            _ => Status::Failed,
        };
        Self {
            status,
            message: ctrl_error.message.clone(),
            ctrl_error: Some(Box::new(ctrl_error)),
            errno: None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
