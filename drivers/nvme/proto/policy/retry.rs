// SPDX-License-Identifier: GPL-2.0

//! Whether to retry a failed command.
//!
//! The decisions are those of the C host (`nvme_decide_disposition()`), with limits on delays and
//! on the time for which path errors are retried.

use crate::format::status::{Code, Status};

/// Action for a command that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// Complete the command with its status.
    Complete,
    /// Send the command again.
    Retry {
        /// Delay in milliseconds: what the target requests, within limits.
        delay_ms: u32,
    },
    /// Send the command again after a path error. This does not count as a retry.
    RetryPath {
        /// Delay in milliseconds; not 0.
        delay_ms: u32,
    },
}

/// Duration of a command's path errors, and its limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathErrorTime {
    /// Time since the first path error of the command, in milliseconds; 0 for the first.
    pub since_ms: u32,
    /// Time for which the command is retried: see [`path_retry_ms`].
    pub limit_ms: u32,
}

/// Returns the time for which a command with path errors is retried, in milliseconds. The
/// `fast_io_fail_tmo` of the administrator may limit it.
///
/// `ana_transition_time` is
/// [that of the controller](crate::format::identify::Controller::ana_transition_time).
pub fn path_retry_ms(ana_transition_time: Option<u8>) -> u32 {
    /// The time without ANA: ANATT of the Linux target.
    const DEFAULT_S: u8 = 10;
    let seconds = ana_transition_time.unwrap_or(DEFAULT_S).max(1);
    u32::from(seconds).saturating_mul(1000)
}

/// A command that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailedCommand {
    /// Status of the response.
    pub status: Status,
    /// Number of retries so far.
    pub retries: u8,
    /// The submitter wants no retry.
    pub no_retry: bool,
    /// The time of its path errors.
    pub path: PathErrorTime,
}

/// Limits of retries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryPolicy {
    /// Largest number of retries of a command.
    pub max_retries: u8,
    /// Command retry delays (CRDT1 to CRDT3) of the controller, in units of 100 ms.
    pub delays: [u16; 3],
}

impl RetryPolicy {
    const DELAY_UNIT_MS: u32 = 100;

    /// Longest delay. Nothing can interrupt a delayed command, and its disk is neither removed nor
    /// changed before it ends.
    const LONGEST_DELAY_MS: u32 = 10_000;

    /// Shortest and longest delay after a path error. Between them the delay is the time since the
    /// first error, so that delays double.
    const PATH_DELAY_MS: [u32; 2] = [100, 1000];

    /// Decides what to do with a command that ended.
    ///
    /// A command that requires authentication completes: the host does not support that.
    pub fn decide(&self, ended: FailedCommand) -> Disposition {
        let status = ended.status;
        let final_status = status.is_success()
            || status.do_not_retry()
            || matches!(
                status.code(),
                Code::AUTHENTICATION_REQUIRED | Code::ANA_PERSISTENT_LOSS
            );
        if final_status || ended.no_retry {
            return Disposition::Complete;
        }
        if status.code().is_path_related() {
            return Self::decide_path(ended.path);
        }
        if ended.retries >= self.max_retries {
            return Disposition::Complete;
        }
        Disposition::Retry {
            delay_ms: self.delay_ms(status),
        }
    }

    fn decide_path(path: PathErrorTime) -> Disposition {
        let [shortest, longest] = Self::PATH_DELAY_MS;
        match path.limit_ms.saturating_sub(path.since_ms) {
            0 => Disposition::Complete,
            left => Disposition::RetryPath {
                delay_ms: path.since_ms.clamp(shortest, longest).min(left),
            },
        }
    }

    fn delay_ms(&self, status: Status) -> u32 {
        let units = match status.retry_delay_index() {
            1 => self.delays[0],
            2 => self.delays[1],
            3 => self.delays[2],
            _ => 0,
        };
        u32::from(units)
            .saturating_mul(Self::DELAY_UNIT_MS)
            .min(Self::LONGEST_DELAY_MS)
    }
}

#[cfg(test)]
mod tests;
