// SPDX-License-Identifier: GPL-2.0

//! The thread that ends the connections of hosts that answer neither RDMA READs nor probes.

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

/// Starts the thread, which looks at all connections at the end of each period. Sleeps.
///
/// # Errors
///
/// `ENOMEM`; `EINTR` if the calling process is killed.
pub(crate) fn start(connections: Arc<Connections>) -> Result<Thread> {
    let stop = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
    let stopped = stop.clone();
    let run = move || {
        while !stopped.wait_timeout(ReadLimit::PERIOD) {
            connections.disconnect(Connection::is_silent);
        }
    };
    Thread::spawn(fmt!("nvmet_rdma_watchdog"), move || stop.complete(), run)
}
