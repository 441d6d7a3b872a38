// SPDX-License-Identifier: GPL-2.0

//! Counters of a controller, by queue.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvme_rdma_transport::stats::{
    Count,
    QueueStats,
    ReadStats,
    TimedCommand, //
};

/// Counters of a controller's queues, including queues of earlier connections.
pub(crate) struct CtrlStats {
    queues: KVec<Arc<QueueStats>>,
    timed: bool,
}

impl CtrlStats {
    pub(crate) const fn new() -> Self {
        Self {
            queues: KVec::new(),
            timed: false,
        }
    }

    /// Returns the counters of queue `qid`; creates them at 0 for a new number. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn of(&mut self, qid: u16) -> Result<Arc<QueueStats>> {
        if let Some(stats) = self.queues.iter().find(|stats| stats.qid() == qid) {
            return Ok(stats.clone());
        }
        let stats = Arc::init(QueueStats::new(qid, self.timed), GFP_KERNEL)?;
        self.queues.push(stats.clone(), GFP_KERNEL)?;
        Ok(stats)
    }

    /// Returns the counters of all present and past queues, in the order of their numbers.
    pub(crate) fn queues(&self) -> &[Arc<QueueStats>] {
        &self.queues
    }

    /// Starts or stops counting latencies, for commands that are posted from now on.
    pub(crate) fn set_timed(&mut self, timed: bool) {
        self.timed = timed;
        for queue in &self.queues {
            queue.set_timed(timed);
        }
    }

    fn sum(&self, number: impl Fn(&QueueStats) -> u64) -> u64 {
        let numbers = self.queues.iter().map(|stats| number(stats));
        numbers.fold(0, u64::wrapping_add)
    }
}

/// The sums of all queues.
impl ReadStats for CtrlStats {
    fn count(&self, count: Count) -> u64 {
        self.sum(|stats| stats.count(count))
    }

    fn latencies(&self, command: TimedCommand, bucket: usize) -> u64 {
        self.sum(|stats| stats.latencies(command, bucket))
    }

    fn counts_latencies(&self) -> bool {
        self.timed
    }
}
