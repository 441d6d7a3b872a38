// SPDX-License-Identifier: GPL-2.0

//! Receives that queues share.

use crate::{
    capsule::Capsule,
    queue::TargetQueue, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::rdma::{
    pd::ProtectionDomain,
    srq::SharedReceiveQueue, //
};

/// Receives that the queues on a device share: a queue for each completion vector; none if they are
/// not shared.
pub(crate) struct SharedReceives(KVec<Arc<SharedReceiveQueue<TargetQueue>>>);

impl SharedReceives {
    /// No shared receives.
    pub(crate) const NONE: Self = Self(KVec::new());

    /// Creates the queues with `receives` receives each, and posts these. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the error of the device.
    pub(crate) fn new(pd: &Arc<ProtectionDomain>, receives: u32, in_capsule: u32) -> Result<Self> {
        let limits = pd.device().attributes();
        let vectors = limits.completion_vectors.min(limits.max_srq);
        let receives = receives.min(limits.max_srq_wr);
        let mut queues = KVec::new();
        for _ in 0..vectors {
            let queue = SharedReceiveQueue::with_sges(pd.clone(), receives, 2, |_event| {})?;
            for _ in 0..receives {
                let capsule = Capsule::new(pd.device(), in_capsule)?;
                queue.post(capsule).map_err(|unposted| unposted.error)?;
            }
            queues.push(queue, GFP_KERNEL)?;
        }
        Ok(Self(queues))
    }

    /// Returns the queue for a completion vector.
    pub(crate) fn of_vector(&self, vector: u32) -> Option<&Arc<SharedReceiveQueue<TargetQueue>>> {
        let place = (vector as usize).checked_rem(self.0.len())?;
        self.0.get(place)
    }
}
