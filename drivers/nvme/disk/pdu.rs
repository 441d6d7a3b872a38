// SPDX-License-Identifier: GPL-2.0

//! The private data of a request.

use nvme_proto::{
    format::{
        cqe::Completion,
        sqe::Command, //
    },
    policy::retry::PathErrorTime,
};
use rrdma::sync::{
    Claim,
    Deadline,
    Msecs,
    RelaxedBool,
    SingleWriterCounter, //
};

/// Most retries of a request after an error status or a time-out, as in the C host
/// (`nvme_max_retries`).
pub(super) const MAX_RETRIES: u8 = 5;

/// The private data of a request.
pub struct RequestPdu {
    /// The number of retries, and [`PATH_ERROR`](Self::PATH_ERROR). Changed by the owner of the
    /// request only. One counter, so that one store resets both.
    retries: SingleWriterCounter,
    /// When path errors are no longer retried; valid with [`PATH_ERROR`](Self::PATH_ERROR). Only
    /// the owner of the request accesses it, so every claim succeeds.
    path_deadline: Claim<Deadline>,
    /// Set on time-out; if the request still completes, the tag's next request loses one retry.
    timed_out: RelaxedBool,
    /// The request is in no queue: the controller's thread holds it after a connection loss.
    held: RelaxedBool,
    /// The passthrough command that the request carries, if any.
    pub passthru: PassthruCmd,
}

impl RequestPdu {
    /// Flag in `retries`: the request has had a path error.
    const PATH_ERROR: u64 = 1 << 32;

    pub(super) fn new() -> Self {
        Self {
            retries: SingleWriterCounter::new(),
            path_deadline: Claim::new(Deadline::NEVER),
            timed_out: RelaxedBool::new(false),
            held: RelaxedBool::new(false),
            passthru: PassthruCmd::new(),
        }
    }

    /// Returns the number of retries.
    #[inline]
    pub(super) fn retries(&self) -> u64 {
        self.retries.get() & !Self::PATH_ERROR
    }

    /// Returns the time of the request's path errors. `limit` is the time for which they are
    /// retried, if this is the first one.
    pub(super) fn path_error_time(&self, limit: Msecs) -> PathErrorTime {
        let mut deadline = self.path_deadline.try_claim();
        if self.retries.get() & Self::PATH_ERROR == 0 {
            self.retries.add(Self::PATH_ERROR);
            if let Some(deadline) = &mut deadline {
                **deadline = Deadline::after(limit);
            }
        }
        let (span, left) = match deadline {
            Some(deadline) => (deadline.span(), deadline.left()),
            None => (limit, limit),
        };
        PathErrorTime {
            since_ms: span.get().saturating_sub(left.get()),
            limit_ms: span.get(),
        }
    }

    /// Ends the time of the request's path errors when the connection is lost, as an outage is no
    /// path error: the next one has a time of its own. That counts as a retry; without one left the
    /// time goes on. Returns whether it counted one.
    pub(super) fn end_path_error_time(&self) -> bool {
        let ends = self.retries.get() & Self::PATH_ERROR != 0 && self.has_retries_left();
        if ends {
            self.retries.set(self.retries() + 1);
        }
        ends
    }

    /// Whether the request may be retried once more.
    pub(super) fn has_retries_left(&self) -> bool {
        self.retries() < MAX_RETRIES.into()
    }

    /// Counts a retry.
    pub(super) fn count_retry(&self) {
        self.retries.add(1);
    }

    /// Clears the retries and path errors, when the request ends.
    #[inline]
    pub(super) fn reset(&self) {
        self.retries.set(0);
    }

    /// Sets whether the controller's thread holds the request, so that it does not time out.
    pub fn set_held(&self, held: bool) {
        self.held.set(held);
    }

    /// Returns whether the controller's thread holds the request.
    pub(super) fn is_held(&self) -> bool {
        self.held.get()
    }

    /// Records that the request timed out.
    pub(super) fn set_timed_out(&self) {
        self.timed_out.set(true);
    }

    /// Returns whether the request may be retried after its connection ended. Uses up a retry only
    /// if the loss counts as one, if the request timed out, or if it had path errors.
    pub fn may_retry_on_reconnect(&self, counts: bool) -> bool {
        let counted = self.end_path_error_time();
        if counts || self.timed_out.get() {
            self.timed_out.set(false);
            if !counted {
                self.count_retry();
            }
        }
        self.retries() <= MAX_RETRIES.into()
    }
}

/// A passthrough command and its completion, in the private data of the request that carries it.
///
/// Only the owner of the request accesses it, so every claim succeeds.
pub struct PassthruCmd(Claim<PassthruState>);

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
    pub fn begin(&self, command: Command) {
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
    pub fn end(&self) -> Option<Completion> {
        let mut state = self.0.try_claim()?;
        core::mem::take(&mut *state).completion
    }
}
