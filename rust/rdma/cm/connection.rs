// SPDX-License-Identifier: GPL-2.0

//! An established connection.

use super::{
    cm_id::BoundId,
    Endpoint,
    PeerParameters,
    RdAtomicLimits, //
};
use crate::{
    bindings,
    rdma::{
        qp::{
            OwnedQp,
            QueuePair, //
        },
        sleeping_drop::may_sleep, //
    }, //
};
use kernel::sync::Arc;

/// An established connection. Dropping it disconnects and drains the queue pair, which sleeps.
pub struct Connected<E: Endpoint> {
    // Dropped before `queue`, to which the CM ID points.
    id: BoundId,
    queue: OwnedQp<E>,
    peer: PeerParameters,
    rd_atomic: RdAtomicLimits,
}

impl<E: Endpoint> Connected<E> {
    /// Creates the connection of `queue`, which the CM ID `id` has established.
    pub(super) fn new(
        id: BoundId,
        queue: OwnedQp<E>,
        peer: PeerParameters,
        rd_atomic: RdAtomicLimits,
    ) -> Self {
        queue.set_initiator_depth(rd_atomic.initiator_depth);
        Self {
            id,
            queue,
            peer,
            rd_atomic,
        }
    }

    /// Returns the queue pair. Any context.
    pub fn queue_pair(&self) -> &Arc<QueuePair<E>> {
        &self.queue
    }

    /// Returns what the peer sent with its request or its reply. Any context.
    pub fn peer(&self) -> &PeerParameters {
        &self.peer
    }

    /// Returns the number of RDMA reads and atomics that may be outstanding, as negotiated. Any context.
    pub fn rd_atomic_limits(&self) -> RdAtomicLimits {
        self.rd_atomic
    }

    /// Moves the queue pair to the error state, sends DREQ (`rdma_disconnect` does both), and waits until all
    /// posted work requests have completed, see [`drain`](QueuePair::drain).
    ///
    /// Sleeps. May not be called from a completion handler or a connection manager event.
    pub fn disconnect(&self) {
        self.queue.close();
        if !self.queue.device().flushes_what_closes() {
            // An error is ignored: drain() tries again.
            let _ = self.queue.stop();
        }
        // SAFETY: By the invariants of `CmId`, the CM ID is valid. The call fails if the connection
        // has ended already, which is fine.
        unsafe { bindings::rdma_disconnect(self.id.as_ptr()) };
        self.queue.drain();
    }
}

impl<E: Endpoint> Drop for Connected<E> {
    fn drop(&mut self) {
        // Otherwise the drop of `queue` leaks the queue pair.
        if may_sleep() {
            self.disconnect();
        }
    }
}
