// SPDX-License-Identifier: GPL-2.0

//! Receives that queues share, and the completion queues of these queues.

use crate::{
    devices::OWNER,
    queue::TargetQueue, //
};
use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use nvmet::Capsule;
use rrdma::rdma::{
    cq::{
        CompletionQueue,
        Poll, //
    },
    device::DeviceRef,
    pd::ProtectionDomain,
    srq::SharedReceiveQueue, //
};

/// Entries of a completion queue for the sends of its queues.
const SENDS: u32 = 16384;

/// Receives that the queues on a device share: a queue for each completion vector; none if they are
/// not shared.
pub(crate) struct SharedReceives {
    vectors: KVec<Arc<SharedVector>>,
    in_capsule: u32,
}

impl SharedReceives {
    /// No shared receives, for queues with `in_capsule` bytes of data in a capsule.
    pub(crate) fn none(in_capsule: u32) -> Self {
        Self {
            vectors: KVec::new(),
            in_capsule,
        }
    }

    /// Creates the queues with `receives` receives each, which have room for `in_capsule` bytes of data,
    /// and posts these. There are fewer if the device cannot have as many. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the error of the device.
    pub(crate) fn new(pd: &Arc<ProtectionDomain>, receives: u32, in_capsule: u32) -> Result<Self> {
        let limits = pd.device().attributes();
        let count = limits.completion_vectors.min(limits.max_srq);
        // All may complete in one completion queue, which needs entries for sends, too.
        let most = limits.max_srq_wr.min(limits.max_cqe / 2);
        if receives > most {
            let device = pd.device().name();
            pr_warn!("{device}: srq_size reduced to {most}\n");
        }
        let mut this = Self::none(in_capsule);
        for vector in 0..count {
            let vector = SharedVector::new(pd, vector, receives.min(most), in_capsule)?;
            this.vectors.push(vector, GFP_KERNEL)?;
        }
        Ok(this)
    }

    /// Returns how many bytes of data a capsule may have.
    pub(crate) fn in_capsule(&self) -> u32 {
        self.in_capsule
    }

    /// Returns the receives for a completion vector.
    pub(crate) fn of_vector(&self, vector: u32) -> Option<&Arc<SharedVector>> {
        let place = (vector as usize).checked_rem(self.vectors.len())?;
        self.vectors.get(place)
    }
}

/// Shared receives of one completion vector.
#[pin_data]
pub(crate) struct SharedVector {
    queue: Arc<SharedReceiveQueue<TargetQueue>>,
    receives: u32,
    device: DeviceRef,
    vector: u32,
    /// Receives that queues may yet get as their share. The sum of all shares is half of the receives. So the other
    /// half is always posted again at once, and no host can keep it.
    unshared: AtomicU32,
    /// Completion queues of the queues that take these receives.
    #[pin]
    completions: Mutex<KVec<SharedCompletions>>,
}

/// A completion queue that has one entry for each shared receive, and entries for the sends of its queues.
struct SharedCompletions {
    cq: Arc<CompletionQueue>,
    /// Entries that no queue has.
    left: u32,
}

/// Part of the shared receives, and of a completion queue for them, that a queue has. Dropped after the queue pair was
/// drained.
pub(crate) struct Share {
    of: Arc<SharedVector>,
    receives: u16,
    cq: Arc<CompletionQueue>,
    entries: u32,
}

impl SharedVector {
    fn new(
        pd: &Arc<ProtectionDomain>,
        vector: u32,
        receives: u32,
        in_capsule: u32,
    ) -> Result<Arc<Self>> {
        // Data has a piece of memory of its own.
        let sges = match in_capsule {
            0 => 1,
            _ => 2,
        };
        let queue = SharedReceiveQueue::with_sges(pd.clone(), receives, sges, |_event| {})?;
        for _ in 0..receives {
            let capsule = Capsule::new(pd, in_capsule)?;
            queue.post(capsule).map_err(|unposted| unposted.error)?;
        }
        let half = receives / 2;
        Arc::pin_init(
            pin_init!(Self {
                queue,
                receives,
                device: pd.device().clone(),
                vector,
                unshared: AtomicU32::new(half),
                completions <- new_mutex!(KVec::new(), "nvmet_rdma_rust::SharedVector"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the queue.
    pub(crate) fn queue(&self) -> &Arc<SharedReceiveQueue<TargetQueue>> {
        &self.queue
    }

    /// Returns the share of a new queue of `commands` entries, whose completion queue has `entries` entries for its
    /// sends. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINVAL` if the device cannot have a completion queue of this size.
    pub(crate) fn share(self: &Arc<Self>, commands: u16, entries: u32) -> Result<Share> {
        let cq = self.completion_queue(entries)?;
        let mut receives = 0;
        // The closure always returns a number.
        let _ = self
            .unshared
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |unshared| {
                receives = share_of(unshared, commands);
                unshared.checked_sub(receives.into())
            });
        Ok(Share {
            of: self.clone(),
            receives,
            cq,
            entries,
        })
    }

    /// Takes entries of a completion queue. May sleep.
    fn completion_queue(&self, entries: u32) -> Result<Arc<CompletionQueue>> {
        let mut completions = self.completions.lock();
        if let Some(known) = completions.iter_mut().find(|known| known.left >= entries) {
            known.left = known.left.saturating_sub(entries);
            return Ok(known.cq.clone());
        }
        let most = self.device.attributes().max_cqe;
        let size = self.receives.saturating_add(entries.max(SENDS)).min(most);
        let left = size.checked_sub(self.receives).ok_or(EINVAL)?;
        let left = left.checked_sub(entries).ok_or(EINVAL)?;
        let device = self.device.clone();
        let cq = CompletionQueue::alloc(device, size, self.vector, Poll::Workqueue, OWNER)?;
        let known = SharedCompletions {
            cq: cq.clone(),
            left,
        };
        completions.push(known, GFP_KERNEL)?;
        Ok(cq)
    }
}

/// Returns the share of a queue of `commands` entries: an eighth of what is left, so that later queues get some, too.
fn share_of(unshared: u32, commands: u16) -> u16 {
    let share = unshared / 8;
    share.min(commands.into()) as u16
}

impl Share {
    /// Returns how many shared receives the queue may keep while it executes commands.
    pub(crate) fn receives(&self) -> u16 {
        self.receives
    }

    /// Returns the completion queue.
    pub(crate) fn completion_queue(&self) -> &Arc<CompletionQueue> {
        &self.cq
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of
            .unshared
            .fetch_add(self.receives.into(), Ordering::Relaxed);
        for known in self.of.completions.lock().iter_mut() {
            if Arc::ptr_eq(&known.cq, &self.cq) {
                known.left = known.left.saturating_add(self.entries);
            }
        }
    }
}
