// SPDX-License-Identifier: GPL-2.0

//! A connection that is made.

use super::{
    cm_id::CmId,
    Endpoint,
    PeerParameters,
    RdAtomicLimits, //
};
use crate::{
    bindings,
    rdma::qp::QueuePair, //
};
use kernel::sync::Arc;

/// An established connection; dropping it disconnects and drains.
pub struct Connected<E: Endpoint> {
    // Dropped first: the id knows the queue pair.
    id: CmId,
    queue: Arc<QueuePair<E>>,
    peer: PeerParameters,
    rd_atomic: RdAtomicLimits,
}

impl<E: Endpoint> Connected<E> {
    /// `id` has made the connection of `queue`, which it owns.
    pub(super) fn new(
        id: CmId,
        queue: Arc<QueuePair<E>>,
        peer: PeerParameters,
        rd_atomic: RdAtomicLimits,
    ) -> Self {
        Self {
            id,
            queue,
            peer,
            rd_atomic,
        }
    }

    /// The queue pair.
    pub fn queue_pair(&self) -> &Arc<QueuePair<E>> {
        &self.queue
    }

    /// What the peer told: when it accepted, or when it asked.
    pub fn peer(&self) -> &PeerParameters {
        &self.peer
    }

    /// RDMA reads and atomics that may be outstanding, as both sides agreed.
    pub fn rd_atomic_limits(&self) -> RdAtomicLimits {
        self.rd_atomic
    }

    /// Tells the peer (`rdma_disconnect`), moves the queue pair to its error state, and
    /// waits until everything that was posted has completed, see
    /// [`drain`](QueuePair::drain). Sleeps; not from a completion or a connection event.
    pub fn disconnect(&self) {
        self.queue.close();
        if !self.queue.device().flushes_what_closes() {
            // The drain reports it if that is refused.
            self.queue.stop();
        }
        // SAFETY: The id is ours. An error means that it was not connected any
        // more, which is what is wanted.
        unsafe { bindings::rdma_disconnect(self.id.as_ptr()) };
        self.queue.drain();
    }
}

impl<E: Endpoint> Drop for Connected<E> {
    fn drop(&mut self) {
        self.disconnect();
    }
}
