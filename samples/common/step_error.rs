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
        qp::{
            QpContext,
            TransitionError, //
        },
        rw::Unprepared,
        wr::{
            Operation,
            Unposted, //
        },
    },
    scatter::Listed,
    text::Message, //
};

/// Maximum length of a cause in bytes.
const CAUSE: usize = 96;

/// A failed step with its cause.
///
/// The task logs it as `failed: STEP: CAUSE`.
pub(crate) struct StepError {
    step: &'static str,
    cause: Message<CAUSE>,
}

impl StepError {
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

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.cause)
    }
}

impl kernel::fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Adds the name of the step to a result.
///
/// Used as in `ProtectionDomain::new(device).step("protection domain")?`.
pub(crate) trait Step<T> {
    /// Converts the error to a failure of `step`.
    fn step(self, step: &'static str) -> Result<T, StepError>;
}

impl<T, E: Explain> Step<T> for Result<T, E> {
    fn step(self, step: &'static str) -> Result<T, StepError> {
        self.map_err(|error| error.explain(step))
    }
}

/// An error that can be the cause of a [`StepError`].
pub(crate) trait Explain {
    /// Returns the failure of `step` with this cause.
    fn explain(self, step: &'static str) -> StepError;
}

impl Explain for Error {
    fn explain(self, step: &'static str) -> StepError {
        StepError::new(step, fmt!("{self:?}"))
    }
}

impl Explain for TryFromIntError {
    fn explain(self, step: &'static str) -> StepError {
        StepError::new(step, fmt!("out of range"))
    }
}

impl Explain for AllocError {
    fn explain(self, step: &'static str) -> StepError {
        StepError::new(step, fmt!("out of memory"))
    }
}

/// Implements [`Explain`] for errors with a text for users.
macro_rules! explain_by_display {
    ($($error:ty),+) => {
        $(
            impl Explain for $error {
                fn explain(self, step: &'static str) -> StepError {
                    StepError::new(step, format_args!("{self}"))
                }
            }
        )+
    };
}

explain_by_display!(cm::Error, tcp::Error, Malformed, TransitionError);

/// An error that returns what the function took.
impl<T> Explain for (Error, T) {
    fn explain(self, step: &'static str) -> StepError {
        self.0.explain(step)
    }
}

impl<T> Explain for Unposted<T> {
    fn explain(self, step: &'static str) -> StepError {
        self.error.explain(step)
    }
}

impl<D: Listed + Send, E: QpContext> Explain for Unprepared<D, E> {
    fn explain(self, step: &'static str) -> StepError {
        Error::from(self.refusal).explain(step)
    }
}

/// Checks that `got` is `expected`.
pub(crate) fn expect_equal<T: PartialEq + fmt::Debug>(
    step: &'static str,
    got: T,
    expected: T,
) -> Result<(), StepError> {
    match got == expected {
        true => Ok(()),
        false => Err(StepError::new(
            step,
            format_args!("got {got:?}, expected {expected:?}"),
        )),
    }
}

/// Checks that a function failed with `error`.
pub(crate) fn expect_error<T>(
    step: &'static str,
    result: Result<T>,
    error: Error,
) -> Result<(), StepError> {
    match result {
        Err(got) => expect_equal(step, got, error),
        Ok(_) => Err(StepError::new(step, fmt!("no error, expected {error:?}"))),
    }
}

/// Checks that posting an operation failed with `error`. Returns the operation.
pub(crate) fn expect_unposted<T>(
    step: &'static str,
    result: Result<(), Unposted<T>>,
    error: Error,
) -> Result<Operation<T>, StepError> {
    match result {
        Err(unposted) => {
            expect_equal(step, unposted.error, error)?;
            Ok(unposted.operation)
        }
        Ok(()) => Err(StepError::new(step, fmt!("posted, expected {error:?}"))),
    }
}
