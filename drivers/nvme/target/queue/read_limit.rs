// SPDX-License-Identifier: GPL-2.0

//! Time limit of the RDMA READs of a queue.
//!
//! A command whose data is being read keeps its namespace, so that nvmet cannot disable it. The host, or its queue
//! pair, decides how long an RDMA READ takes: it may answer none, and soft-RoCE repeats them for ever if the host's
//! request has a retry count of 7.
//!
//! RDMA READs of a queue pair complete in the order in which they were posted. So two counters tell how old the oldest
//! one is: at the end of each period, those that were begun before an earlier period must have ended.

use rrdma::sync::{
    Msecs,
    SingleWriterCounter, //
};

/// The RDMA READs of a queue.
pub(crate) struct ReadLimit {
    /// Number of RDMA READs that were posted. The handlers of the completion queue write it, one at a time. So does the
    /// thread that accepts the connection, while it executes the only command.
    begun: SingleWriterCounter,
    /// Number of RDMA READs that have ended. Written as `begun` is.
    ended: SingleWriterCounter,
    /// Value that `ended` must reach before `periods` reaches [`PERIODS`](Self::PERIODS). The thread that calls
    /// `is_overdue` writes both.
    awaited: SingleWriterCounter,
    periods: SingleWriterCounter,
}

impl ReadLimit {
    /// Time between two calls of [`is_overdue`](Self::is_overdue).
    pub(crate) const PERIOD: Msecs = Msecs::from_secs(10);

    /// Full periods that an RDMA READ may take.
    const PERIODS: u64 = 3;

    /// Time that an RDMA READ may take. nvme-core ends a command after as long (`nvme_core.io_timeout`).
    pub(super) const TIME: Msecs = Msecs::from_secs(30);

    pub(super) fn new() -> Self {
        Self {
            begun: SingleWriterCounter::new(),
            ended: SingleWriterCounter::new(),
            awaited: SingleWriterCounter::new(),
            periods: SingleWriterCounter::new(),
        }
    }

    /// Counts an RDMA READ that is about to be posted.
    pub(super) fn begun(&self) {
        self.begun.add(1);
    }

    /// Counts an RDMA READ that has completed, or was not posted.
    pub(super) fn ended(&self) {
        self.ended.add(1);
    }

    /// Returns whether an RDMA READ is older than [`TIME`](Self::TIME), at the end of a period.
    pub(super) fn is_overdue(&self) -> bool {
        // 64 bits do not wrap around.
        if self.ended.get() >= self.awaited.get() {
            self.awaited.set(self.begun.get());
            self.periods.set(0);
            return false;
        }
        self.periods.add(1);
        self.periods.get() >= Self::PERIODS
    }
}
