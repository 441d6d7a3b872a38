// SPDX-License-Identifier: GPL-2.0

//! Errors of samples: the step that failed, and the cause.

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

/// Maximum length of a cause in bytes.
const CAUSE: usize = 96;

/// A failed step with its cause.
///
/// The task logs it as `failed: STEP: CAUSE`.
pub(crate) struct Failure {
    step: &'static str,
    cause: Message<CAUSE>,
}

impl Failure {
    /// Creates the failure of `step`, with a cause such as `fmt!("got {n} bytes, expected {m}")`.
    pub(crate) fn new(step: &'static str, cause: fmt::Arguments<'_>) -> Self {
        Self {
            step,
            cause: Message::new(cause),
        }
    }

    /// Returns the step.
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

/// Adds the name of the step to a result.
///
/// Used as in `ProtectionDomain::new(device).step("protection domain")?`.
pub(crate) trait Step<T> {
    /// Converts the error to a failure of `step`.
    fn step(self, step: &'static str) -> Result<T, Failure>;
}

impl<T, E: Explain> Step<T> for Result<T, E> {
    fn step(self, step: &'static str) -> Result<T, Failure> {
        self.map_err(|error| error.explain(step))
    }
}

/// An error that can be the cause of a [`Failure`].
pub(crate) trait Explain {
    /// Returns the failure of `step` with this cause.
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

/// The text starts with the stage of the connection manager, as in `connecting: timed out`.
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
