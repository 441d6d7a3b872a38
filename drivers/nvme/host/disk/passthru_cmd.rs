// SPDX-License-Identifier: GPL-2.0

//! A passthrough command to a namespace.

use nvme_proto::format::{cqe::Completion, sqe::Command};
use rrdma::sync::Claim;

/// A passthrough command and its completion, in the private data of the request that carries it.
///
/// Only the owner of the request accesses it, so every claim succeeds.
pub(crate) struct PassthruCmd(Claim<PassthruState>);

#[derive(Default)]
struct PassthruState {
    command: Option<Command>,
    completion: Option<Completion>,
}

impl PassthruCmd {
    pub(super) const fn new() -> Self {
        Self(Claim::new(PassthruState {
            command: None,
            completion: None,
        }))
    }

    /// Stores the command of a new request.
    pub(super) fn begin(&self, command: Command) {
        if let Some(mut state) = self.0.try_claim() {
            *state = PassthruState {
                command: Some(command),
                completion: None,
            };
        }
    }

    /// Returns the command.
    pub(super) fn command(&self) -> Option<Command> {
        self.0.try_claim().and_then(|state| state.command)
    }

    /// Stores the completion.
    pub(super) fn complete(&self, completion: Completion) {
        if let Some(mut state) = self.0.try_claim() {
            state.completion = Some(completion);
        }
    }

    /// Takes the completion, if the target sent one.
    pub(super) fn end(&self) -> Option<Completion> {
        let mut state = self.0.try_claim()?;
        core::mem::take(&mut *state).completion
    }
}
