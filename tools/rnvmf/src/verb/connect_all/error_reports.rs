// SPDX-License-Identifier: GPL-2.0

//! The errors of a run. The same error of a target is printed once until the target recovers.

use crate::error::{Error, Status};
use crate::model::options::Target;
use std::collections::HashMap;
use std::mem::take;

/// The errors of a run.
#[derive(Default)]
pub(super) struct ErrorReports {
    /// Errors to be printed.
    pending: Vec<Error>,
    /// Message of the last error of each target that has not recovered.
    reported: HashMap<Target, String>,
    /// Number of printed errors.
    pub(super) nr_failed: usize,
    /// Number of printed errors because the caller lacks a privilege.
    pub(super) nr_denied: usize,
}

impl ErrorReports {
    /// Adds an error that does not belong to a target, or that cannot recur.
    pub(super) fn push(&mut self, error: Error) {
        self.pending.push(error);
    }

    /// Adds an error of a target, unless its last error was the same.
    pub(super) fn report(&mut self, target: &Target, error: Error) {
        let last = self.reported.insert(target.clone(), error.message.clone());
        if last.as_ref() != Some(&error.message) {
            self.pending.push(error);
        }
    }

    /// Whether a target has an error.
    pub(super) fn has(&self, target: &Target) -> bool {
        self.reported.contains_key(target)
    }

    /// Forgets the error of a target. Returns whether it had one.
    pub(super) fn clear(&mut self, target: &Target) -> bool {
        self.reported.remove(target).is_some()
    }

    /// Takes the errors to be printed, and counts them.
    pub(super) fn take_pending(&mut self) -> Vec<Error> {
        let pending = take(&mut self.pending);
        let is_denied = |error: &&Error| error.status == Status::Permission;
        self.nr_failed += pending.len();
        self.nr_denied += pending.iter().filter(is_denied).count();
        pending
    }
}
