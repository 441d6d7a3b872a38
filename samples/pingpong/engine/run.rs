// SPDX-License-Identifier: GPL-2.0

//! The part of the task: starts the ping-pong, waits, and reports the result.

use super::{
    polled_queue::PolledQueue,
    qp_ctx::QpCtx,
    MessageProtocol,
    PingPong,
    Progress, //
};
use crate::common::{
    step_error::StepError,
    task::SampleTask, //
};
use kernel::prelude::*;
use rrdma::{
    rdma::qp::Rts,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// Time without a message after which a message counts as lost, if the service may lose messages.
const LOST: Msecs = Msecs::new(400);

/// How a ping-pong ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All messages were sent and received.
    Complete,
    /// All messages were received, but the last ones sent were not acknowledged.
    Unacknowledged,
    /// No message was received for too long.
    Silent,
}

/// Result of a ping-pong.
pub(crate) struct RoundResult {
    pub(crate) outcome: Outcome,
    pub(crate) received: u32,
    /// Messages that were sent in place of lost ones.
    pub(crate) resent: u32,
}

impl PingPong {
    /// Exchanges messages until the last one was sent and received, or until an error. Sleeps.
    ///
    /// Gives up after `patience` without a message. `refill` posts used shared receives again; it
    /// is called when the shared receive queue runs short.
    ///
    /// # Errors
    ///
    /// The first failure of a queue pair, or the task is stopped.
    pub(crate) fn run<P: MessageProtocol>(
        &self,
        task: &SampleTask,
        queue: &mut PolledQueue,
        pairs: &[Rts<QpCtx<P>>],
        patience: Msecs,
        mut refill: impl FnMut() -> Result<(), StepError>,
    ) -> Result<RoundResult, StepError> {
        let mut round = RoundResult {
            outcome: Outcome::Silent,
            received: 0,
            resent: 0,
        };
        let limit = if P::RESENDS { LOST } else { patience };
        let mut over = Deadline::after(patience);
        pairs
            .iter()
            .for_each(|pair| QpCtx::advance(pair.queue_pair()));
        loop {
            let progress = queue.wait_for(task, limit, || self.progress(round.received))?;
            match progress.transpose()? {
                Some(Progress::Received(received)) => {
                    round.received = received;
                    over = Deadline::after(patience);
                }
                Some(Progress::Short) => {
                    refill()?;
                    over = Deadline::after(patience);
                }
                Some(Progress::End(outcome)) => {
                    round.received = self.config.iters;
                    round.outcome = outcome;
                    return Ok(round);
                }
                None if P::RESENDS && !over.is_over() => {
                    round.resent = round.resent.saturating_add(1);
                    pairs
                        .iter()
                        .for_each(|pair| QpCtx::resend(pair.queue_pair()));
                }
                // A retry count of 7 means unlimited retries on some devices, such as soft-RoCE. So
                // the missing completion may never come.
                None if self.is_last() && !P::RESENDS => {
                    round.outcome = Outcome::Unacknowledged;
                    return Ok(round);
                }
                None => return Ok(round),
            }
        }
    }
}
