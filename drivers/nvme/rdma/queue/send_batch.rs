// SPDX-License-Identifier: GPL-2.0

//! Commands that are posted together.
//!
//! The block layer says with each request whether another one follows. A command that is followed
//! by another waits, and one call posts all that wait, so the device is notified once. The
//! submitter of a last request also posts waiting commands of other submitters, so none waits for
//! long.
//!
//! A request that is alone only reads one flag here.

use super::{
    capsule::{
        Capsule,
        UlpOf, //
    },
    slot::SlotLookup,
    slot_state::Unsent,
};
use crate::{
    params::QueueConfig,
    stats::{
        DataMode,
        PostPosition, //
    },
    ulp::Ulp, //
};
use kernel::prelude::*;
use rrdma::{
    new_irq_lock,
    rdma::{
        qp::QueuePair,
        wr::{
            Batch,
            BatchCapacity,
            Operation,
            Unposted, //
        },
    },
    sync::{
        IrqLock, //
        RelaxedBool,
    },
};

/// Largest number of commands that one call posts: as many as the block layer plugs for a disk.
const COMMANDS: u16 = 32;

/// When to notify the device of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Doorbell {
    /// With a later command, or by [`Queue::ring`](super::Queue::ring).
    Defer,
    /// Now.
    Ring,
}

impl Doorbell {
    /// Converts `bd->last` of the block layer: the last request of a batch rings.
    ///
    /// The variants are in the order of `bool`, so the conversion takes no instruction.
    #[inline(always)]
    pub fn from_last(last: bool) -> Self {
        if last {
            Self::Ring
        } else {
            Self::Defer
        }
    }
}

/// Commands of a queue that wait to be posted.
#[pin_data]
pub(super) struct SendBatch<K: SlotLookup> {
    #[pin]
    waiting: IrqLock<Batch<K::Queue, Capsule<K>>>,
    /// Whether commands wait. The context that adds one posts it later, unless another does before.
    any: RelaxedBool,
}

impl<K: SlotLookup<Payload = <UlpOf<K> as Ulp>::Payload>> SendBatch<K> {
    /// Allocates an empty batch. May sleep.
    pub(super) fn new(config: &QueueConfig) -> impl PinInit<Self, Error> {
        let commands = usize::from(config.requests.min(COMMANDS));
        let room = BatchCapacity {
            operations: commands,
            // A send each. The registration and the memory pieces are in the capsule.
            requests: commands,
            pieces: 0,
        };
        try_pin_init!(Self {
            waiting <- {
                let waiting = Batch::new(room)?;
                new_irq_lock!(waiting, "nvme_rdma_transport::SendBatch")
            },
            any: RelaxedBool::new(false),
        }? Error)
    }

    /// Returns whether commands wait.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.any.get()
    }

    /// Adds a command, and posts all that wait if `doorbell` rings. Rejects commands that cannot be
    /// posted. Any context.
    ///
    /// # Errors
    ///
    /// Returns a capsule that cannot be added.
    #[inline(never)]
    pub(super) fn add(
        &self,
        queue: &QueuePair<K::Queue>,
        mut capsule: Operation<Capsule<K>>,
        data_mode: DataMode,
        doorbell: Doorbell,
    ) -> Result<(), Unposted<Capsule<K>>> {
        let mut waiting = self.waiting.lock();
        if waiting.is_full() {
            post(queue, &mut waiting);
        }
        capsule.position = if waiting.is_empty() {
            PostPosition::First
        } else {
            PostPosition::Follows
        };
        let added = waiting.push(queue, capsule, |capsule, chain| {
            capsule.chain(data_mode, chain)
        });
        if doorbell == Doorbell::Ring {
            post(queue, &mut waiting);
        }
        self.any.set(!waiting.is_empty());
        added
    }

    /// Posts all commands that wait, and rejects those that cannot be posted. Any context.
    pub(super) fn send(&self, queue: &QueuePair<K::Queue>) {
        let mut waiting = self.waiting.lock();
        post(queue, &mut waiting);
        self.any.set(false);
    }

    /// Returns the capsules that wait to their slots, which are then reclaimed. No command may be
    /// added any more.
    pub(super) fn abandon(&self, queue: &K::Queue) {
        let mut waiting = self.waiting.lock();
        while let Some(capsule) = waiting.take_back() {
            if let Some(slot) = K::slot(queue, capsule.tag) {
                slot.set_aside(capsule);
            }
        }
    }
}

fn post<K: SlotLookup<Payload = <UlpOf<K> as Ulp>::Payload>>(
    queue: &QueuePair<K::Queue>,
    waiting: &mut Batch<K::Queue, Capsule<K>>,
) {
    let Err(error) = waiting.post(queue) else {
        return;
    };
    while let Some(operation) = waiting.take_back() {
        let Some(slot) = K::slot(queue.context(), operation.tag) else {
            continue;
        };
        let Unsent { error, payload } = slot.undo(queue, Unposted { error, operation });
        if let Some(payload) = payload {
            UlpOf::<K>::finish(UlpOf::<K>::reject(error, payload));
        }
    }
}
