// SPDX-License-Identifier: GPL-2.0

//! Why a sample failed: at which step, and from what cause.

use super::formats::handshake::Malformed;
use core::{
    fmt,
    num::TryFromIntError, //
};
use kernel::{
    alloc::AllocError,
    prelude::*, //
};
use rrdma::{
    net::tcp,
    rdma::{
        cm,
        qp::TransitionError,
        wr::Unposted, //
    },
    text::Message, //
};

/// Room for a cause: a sentence without its subject.
const CAUSE: usize = 96;

/// A step that failed. What it was about is told in the line that the task logs:
/// `failed: STEP: CAUSE`.
pub(crate) struct Failure {
    step: &'static str,
    cause: Message<CAUSE>,
}

impl Failure {
    /// A step failed from this cause, such as `fmt!("{n} bytes and not {m}")`.
    pub(crate) fn new(step: &'static str, cause: fmt::Arguments<'_>) -> Self {
        Self {
            step,
            cause: Message::new(cause),
        }
    }

    /// The step.
    pub(crate) fn step(&self) -> &'static str {
        self.step
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.cause)
    }
}

impl kernel::fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Names the step that a result is of: `ProtectionDomain::new(device).step("protection
/// domain")?`.
pub(crate) trait Step<T> {
    /// The result as one of this step.
    fn step(self, step: &'static str) -> Result<T, Failure>;
}

impl<T, E: Explain> Step<T> for Result<T, E> {
    fn step(self, step: &'static str) -> Result<T, Failure> {
        self.map_err(|error| error.explain(step))
    }
}

/// An error that can be the cause of a failure.
pub(crate) trait Explain {
    /// The failure of this step from this cause.
    fn explain(self, step: &'static str) -> Failure;
}

impl Explain for Error {
    fn explain(self, step: &'static str) -> Failure {
        Failure::new(step, fmt!("{self:?}"))
    }
}

impl Explain for TryFromIntError {
    fn explain(self, step: &'static str) -> Failure {
        Failure::new(step, fmt!("out of range"))
    }
}

impl Explain for AllocError {
    fn explain(self, step: &'static str) -> Failure {
        Failure::new(step, fmt!("out of memory"))
    }
}

/// The step of the connection manager goes before the cause.
impl Explain for cm::Error {
    fn explain(self, step: &'static str) -> Failure {
        Failure::new(step, format_args!("{self}"))
    }
}

impl Explain for tcp::Error {
    fn explain(self, step: &'static str) -> Failure {
        Failure::new(step, fmt!("{self}"))
    }
}

impl Explain for TransitionError {
    fn explain(self, step: &'static str) -> Failure {
        Failure::new(step, format_args!("{self}"))
    }
}

impl<T> Explain for Unposted<T> {
    fn explain(self, step: &'static str) -> Failure {
        self.error.explain(step)
    }
}

impl Explain for Malformed {
    fn explain(self, step: &'static str) -> Failure {
        Failure::new(step, format_args!("{self}"))
    }
}
