// SPDX-License-Identifier: GPL-2.0

//! Receives that queues share.

use crate::queue::TargetQueue;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvmet::Capsule;
use rrdma::rdma::{
    pd::ProtectionDomain,
    srq::SharedReceiveQueue, //
};

/// Receives that the queues on a device share: a queue for each completion vector; none if they are
/// not shared.
pub(crate) struct SharedReceives {
    queues: KVec<Arc<SharedReceiveQueue<TargetQueue>>>,
    in_capsule: u32,
}

impl SharedReceives {
    /// No shared receives, for queues with `in_capsule` bytes of data in a capsule.
    pub(crate) fn none(in_capsule: u32) -> Self {
        Self {
            queues: KVec::new(),
            in_capsule,
        }
    }

    /// Creates the queues with `receives` receives each, which have room for `in_capsule` bytes of data,
    /// and posts these. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the error of the device.
    pub(crate) fn new(pd: &Arc<ProtectionDomain>, receives: u32, in_capsule: u32) -> Result<Self> {
        let limits = pd.device().attributes();
        let vectors = limits.completion_vectors.min(limits.max_srq);
        let receives = receives.min(limits.max_srq_wr);
        let mut this = Self::none(in_capsule);
        // Data has a piece of memory of its own.
        let sges = match in_capsule {
            0 => 1,
            _ => 2,
        };
        for _ in 0..vectors {
            let queue = SharedReceiveQueue::with_sges(pd.clone(), receives, sges, |_event| {})?;
            for _ in 0..receives {
                let capsule = Capsule::new(pd, in_capsule)?;
                queue.post(capsule).map_err(|unposted| unposted.error)?;
            }
            this.queues.push(queue, GFP_KERNEL)?;
        }
        Ok(this)
    }

    /// Returns how many bytes of data a capsule may have.
    pub(crate) fn in_capsule(&self) -> u32 {
        self.in_capsule
    }

    /// Returns the queue for a completion vector.
    pub(crate) fn of_vector(&self, vector: u32) -> Option<&Arc<SharedReceiveQueue<TargetQueue>>> {
        let place = (vector as usize).checked_rem(self.queues.len())?;
        self.queues.get(place)
    }
}
