// SPDX-License-Identifier: GPL-2.0

//! Errors: the program's, with an exit status, and the kernel's of a controller or a discovery.

use crate::nlattr::{Attributes, Malformed};
use crate::output::{json_line, Format};
use crate::uapi::{error as attribute, ErrorStage};
use libc::{SIGINT, SIGPIPE, SIGTERM};
use serde::{Serialize, Serializer};
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
    /// SIGINT asked it to stop, and ends it when all is undone and printed.
    Interrupted = 128 + SIGINT as u8,
    /// SIGTERM did.
    Terminated = 128 + SIGTERM as u8,
    /// Nobody reads the output: the status of a program that SIGPIPE ends.
    BrokenPipe = 128 + SIGPIPE as u8,
}

impl Status {
    /// Returns the status of several errors together: their common one, or `Failed`.
    pub(crate) fn common(mut all: impl Iterator<Item = Self>) -> Option<Self> {
        let first = all.next()?;
        let same = all.all(|each| each == first);
        Some(if same { first } else { Self::Failed })
    }
}

/// An error with the sentence that explains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Error {
    /// The exit status it ends with.
    pub(crate) status: Status,
    /// The cause and, where there is something to do, what.
    pub(crate) message: String,
    /// The kernel's error of a controller or a discovery.
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

    /// Puts what was being done before the cause.
    pub(crate) fn context(self, what: impl fmt::Display) -> Self {
        Self {
            message: format!("{what}: {}", self.message),
            ..self
        }
    }

    /// Returns the error of a verb that a signal stopped before it had done all.
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
            // A failure to print cannot be printed either; the status reports the error.
            let _ = writeln!(std::io::stderr(), "{}", self.render(format));
        }
        ExitCode::from(self.status as u8)
    }

    /// Returns the error as one line, without its end.
    pub(crate) fn render(&self, format: Format) -> String {
        match format {
            Format::Normal => format!("rnvmf: {}", self.message),
            Format::Json => json_line(&ErrorDocument {
                error: ErrorBody {
                    status: self.status as u8,
                    message: &self.message,
                    failure: self.ctrl_error.as_deref(),
                },
            }),
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
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Returns the text of an error number.
pub(crate) fn strerror(errno: i32) -> String {
    io_message(&std::io::Error::from_raw_os_error(errno))
}

/// Where a controller was when it failed; a newer kernel may know more stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stage(pub(crate) u32);

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ErrorStage::from_raw(self.0) {
            Some(stage) => f.write_str(stage.name()),
            None => write!(f, "stage-{}", self.0),
        }
    }
}

impl Serialize for Stage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The last error of a controller, or of a discovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CtrlError {
    /// Where it failed.
    pub(crate) stage: Stage,
    /// The error number, positive.
    pub(crate) errno: i32,
    /// The cause in words.
    pub(crate) message: String,
    /// Reason of a rejection by the connection manager's peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reject_reason: Option<u32>,
    /// NVMe/RDMA status of that rejection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cm_status: Option<u16>,
    /// NVMe status of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nvme_status: Option<u16>,
    /// Queue that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) qid: Option<u16>,
    /// Milliseconds until a discovery that is followed goes on, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_attempt: Option<u32>,
}

impl CtrlError {
    /// Reads the kernel's nest of attributes.
    pub(crate) fn read(attributes: &Attributes) -> Result<Self, Malformed> {
        let stage = Stage(attributes.require("stage", attributes.u32(attribute::STAGE)?)?);
        let errno = attributes.require("errno", attributes.s32(attribute::ERRNO)?)?;
        let message = match attributes.string(attribute::MESSAGE)? {
            Some(text) if !text.is_empty() => text,
            _ => format!("{stage} failed: {}", strerror(errno)),
        };
        Ok(Self {
            stage,
            errno,
            message,
            reject_reason: attributes.u32(attribute::REJECT_REASON)?,
            cm_status: attributes.u16(attribute::CM_STATUS)?,
            nvme_status: attributes.u16(attribute::NVME_STATUS)?,
            qid: attributes.u16(attribute::QID)?,
            next_attempt: None,
        })
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
        }
    }
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Self {
        Self::failed(malformed.to_string())
    }
}

#[cfg(test)]
pub(crate) mod tests;
