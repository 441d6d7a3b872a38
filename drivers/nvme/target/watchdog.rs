// SPDX-License-Identifier: GPL-2.0

//! The thread that ends the connections of hosts that do not answer RDMA READs.

use crate::{
    connection::{
        Connection,
        Connections, //
    },
    queue::ReadLimit,
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::sync::{
    Thread,
    TimedCompletion, //
};

/// The thread. Dropping it waits for its end.
pub(crate) struct Watchdog {
    stop: Arc<TimedCompletion>,
    /// `None` once stopped.
    thread: Option<Thread>,
}

impl Watchdog {
    /// Starts the thread, which looks at all connections at the end of each period. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINTR` if the calling process is killed.
    pub(crate) fn new(connections: Arc<Connections>) -> Result<Self> {
        let stop = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        let stopped = stop.clone();
        let run = move || {
            while !stopped.wait_timeout(ReadLimit::PERIOD) {
                connections.disconnect(Connection::has_overdue_read);
            }
        };
        let thread = Thread::spawn(fmt!("nvmet_rdma_reads"), run)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop.complete();
        drop(self.thread.take());
    }
}
