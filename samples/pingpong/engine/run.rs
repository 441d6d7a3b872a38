// SPDX-License-Identifier: GPL-2.0

//! The task's part of a ping-pong: it begins, waits, and says how it went.

use super::{
    polled_queue::PolledQueue,
    qp_ctx::QpCtx,
    MessageProtocol,
    PingPong,
    Progress, //
};
use crate::common::{
    failure::Failure,
    task::SampleTask, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    rdma::qp::QueuePair,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// How long a message that nothing guarantees may take before it is taken for lost.
const LOST: Msecs = Msecs::new(400);

/// How a ping-pong ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All messages were sent and received.
    Complete,
    /// The last messages were sent, and not acknowledged.
    Unacknowledged,
    /// The peer was silent for too long.
    Silent,
}

/// How it went.
pub(crate) struct RoundResult {
    pub(crate) outcome: Outcome,
    pub(crate) received: u32,
    /// Messages that were sent once more.
    pub(crate) resent: u32,
}

impl PingPong {
    /// Exchanges messages until the last one has been sent and received, or it is over for
    /// another reason. The peer may be silent as long as `patience` says. `refill` posts
    /// shared receives again, when few are left. Sleeps.
    ///
    /// # Errors
    ///
    /// What failed.
    pub(crate) fn run<P: MessageProtocol>(
        &self,
        task: &SampleTask,
        queue: &mut PolledQueue,
        pairs: &[Arc<QueuePair<QpCtx<P>>>],
        patience: Msecs,
        mut refill: impl FnMut() -> Result<(), Failure>,
    ) -> Result<RoundResult, Failure> {
        let mut round = RoundResult {
            outcome: Outcome::Silent,
            received: 0,
            resent: 0,
        };
        let limit = if P::RESENDS { LOST } else { patience };
        let mut over = Deadline::after(patience);
        pairs.iter().for_each(|pair| QpCtx::advance(pair));
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
                Some(Progress::Done) => {
                    round.received = self.config.iters;
                    round.outcome = Outcome::Complete;
                    return Ok(round);
                }
                Some(Progress::Unacknowledged) => {
                    round.received = self.config.iters;
                    round.outcome = Outcome::Unacknowledged;
                    return Ok(round);
                }
                None if P::RESENDS && over.left() != Msecs::new(0) => {
                    round.resent = round.resent.saturating_add(1);
                    pairs.iter().for_each(|pair| QpCtx::resend(pair));
                }
                // Some devices send 7 retries for ever: soft-RoCE does.
                None if self.is_last() && !P::RESENDS => {
                    round.outcome = Outcome::Unacknowledged;
                    return Ok(round);
                }
                None => return Ok(round),
            }
        }
    }
}
