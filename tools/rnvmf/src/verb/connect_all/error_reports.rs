// SPDX-License-Identifier: GPL-2.0

//! The errors of a run. The same error of a target is printed once, until the target recovers.

use crate::error::{Error, Status};
use crate::model::options::Target;
use std::mem::take;

/// The last error of a target.
struct Reported {
    target: Target,
    message: String,
}

/// The errors of a run.
#[derive(Default)]
pub(super) struct ErrorReports {
    /// The errors that are not printed yet.
    pending: Vec<Error>,
    /// The targets that have an error now.
    reported: Vec<Reported>,
    /// How many errors were printed.
    pub(super) nr_failed: usize,
    /// How many of those because the caller lacks a privilege.
    pub(super) nr_denied: usize,
}

impl ErrorReports {
    /// Adds an error that is of no target, or not a lasting one.
    pub(super) fn push(&mut self, error: Error) {
        self.pending.push(error);
    }

    /// Adds an error of a target, unless it is the one that was reported last.
    pub(super) fn report(&mut self, target: &Target, error: Error) {
        let last = self.reported.iter_mut().find(|each| each.target == *target);
        match last {
            Some(last) if last.message == error.message => return,
            Some(last) => last.message.clone_from(&error.message),
            None => self.reported.push(Reported {
                target: target.clone(),
                message: error.message.clone(),
            }),
        }
        self.pending.push(error);
    }

    /// Whether a target has an error.
    pub(super) fn has(&self, target: &Target) -> bool {
        self.reported.iter().any(|each| each.target == *target)
    }

    /// The target has recovered, or is not of interest any more. Returns whether it had an error.
    pub(super) fn clear(&mut self, target: &Target) -> bool {
        let before = self.reported.len();
        self.reported.retain(|each| each.target != *target);
        self.reported.len() < before
    }

    /// Takes the errors that are to be printed.
    pub(super) fn take_pending(&mut self) -> Vec<Error> {
        take(&mut self.pending)
    }

    /// Counts an error that is printed.
    pub(super) fn count(&mut self, error: &Error) {
        self.nr_failed += 1;
        self.nr_denied += usize::from(error.status == Status::Permission);
    }
}
