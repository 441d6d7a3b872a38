// SPDX-License-Identifier: GPL-2.0

//! The driver of the disks, and the types of the transport for it.

use nvme_rdma_transport::{
    admin_channel,
    conn_error,
    queue, //
};
use rrdma::sync::TimedCompletion;

/// The driver of all disks: implements the callbacks of the block layer and of the transport.
pub struct Io;

/// A queue whose payloads are the disks' requests.
pub type Queue = queue::Queue<Io>;

/// The private data of a queue.
pub struct QueueData {
    /// The controller's delays before retries, in units of 100 ms.
    pub retry_delays: [u16; 3],
}

/// A channel to an admin queue, for one command at a time.
pub type AdminChannel = admin_channel::AdminChannel<Io>;

/// Keeps the first error of a controller's connections, and wakes its thread.
pub type ErrorNotifier = conn_error::ErrorNotifier<TimedCompletion>;
