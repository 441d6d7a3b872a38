// SPDX-License-Identifier: GPL-2.0

//! A connection that is made, and what both ways to one have in common.

use super::{
    cm_id::CmId,
    PeerParameters,
    RdAtomicLimits, //
};
use crate::{
    bindings,
    fmt::kernel_display,
    rdma::qp::{
        self,
        QpContext,
        QueuePair, //
    },
};
use core::fmt;
use kernel::sync::Arc;

/// The consumer's side of a queue pair that the connection manager connects.
pub trait Endpoint: QpContext<QpType: qp::Connected> {
    /// The connection is gone, by the peer, the network or the device. Process
    /// context, may sleep, but may not drop the queue pair's connection. May be
    /// called more than once, and before the step that connects has returned.
    fn lost(queue: &QueuePair<Self>, cause: Lost);
}

/// Why an established connection is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// The peer disconnected, or answered our disconnection.
    Disconnected,
    /// The local address or the path to the peer changed.
    AddressChanged,
    /// The peer no longer answers.
    Unreachable,
    /// The device is going away.
    DeviceRemoved,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disconnected => "the peer disconnected",
            Self::AddressChanged => "the address of the path changed",
            Self::Unreachable => "the peer no longer answers",
            Self::DeviceRemoved => "the RDMA device is going away",
        })
    }
}

kernel_display!(Lost);

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
