// SPDX-License-Identifier: GPL-2.0

//! Whether to retry a failed command.
//!
//! The decisions are those of the C host (`nvme_decide_disposition()`), with a limit on delays.

use crate::format::status::{Code, Status};

/// What to do with a command that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// Complete the command with its status.
    Complete,
    /// Send the command again.
    Retry {
        /// Delay in milliseconds: what the target requests, within limits.
        delay_ms: u32,
    },
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

    /// Decides what to do with a command that ended.
    ///
    /// A command that requires authentication completes: the host does not support that.
    pub fn decide(&self, ended: FailedCommand) -> Disposition {
        let status = ended.status;
        let final_status = status.is_success()
            || status.do_not_retry()
            || status.code() == Code::AUTHENTICATION_REQUIRED;
        if final_status || ended.no_retry || ended.retries >= self.max_retries {
            return Disposition::Complete;
        }
        Disposition::Retry {
            delay_ms: self.delay_ms(status),
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
mod tests {
    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        max_retries: 5,
        delays: [1, 20, u16::MAX],
    };
    const RETRY_AT_ONCE: Disposition = Disposition::Retry { delay_ms: 0 };

    fn status(field: u16) -> Status {
        Status::from_wire(field << 1)
    }

    #[test]
    fn cases() {
        let cases = [
            ("success", 0x0000, 0, true, Disposition::Complete),
            ("error", 0x0006, 0, true, RETRY_AT_ONCE),
            ("last retry", 0x0006, 4, true, RETRY_AT_ONCE),
            ("no retry left", 0x0006, 5, true, Disposition::Complete),
            ("far too many", 0x0006, 255, true, Disposition::Complete),
            ("unwanted", 0x0006, 0, false, Disposition::Complete),
            ("do not retry", 0x4006, 0, true, Disposition::Complete),
            ("authentication", 0x0191, 0, true, Disposition::Complete),
            ("path error", 0x0370, 0, true, RETRY_AT_ONCE),
            (
                "first delay",
                0x0821,
                0,
                true,
                Disposition::Retry { delay_ms: 100 },
            ),
            (
                "second delay",
                0x1021,
                0,
                true,
                Disposition::Retry { delay_ms: 2_000 },
            ),
            (
                "third delay",
                0x1821,
                0,
                true,
                Disposition::Retry { delay_ms: 10_000 },
            ),
        ];
        for (name, field, retries, may_retry, expected) in cases {
            let ended = FailedCommand {
                status: status(field),
                retries,
                no_retry: !may_retry,
            };
            assert_eq!(POLICY.decide(ended), expected, "{name}");
        }
    }

    #[test]
    fn no_status_is_retried_for_ever() {
        for field in 0..=0x7fff {
            let ended = FailedCommand {
                status: status(field),
                retries: POLICY.max_retries,
                no_retry: false,
            };
            assert_eq!(POLICY.decide(ended), Disposition::Complete);
        }
    }
}
