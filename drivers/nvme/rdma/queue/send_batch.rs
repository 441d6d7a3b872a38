// SPDX-License-Identifier: GPL-2.0

//! Commands that are sent together.
//!
//! The block layer says of each request whether another one follows. The commands of those that
//! are followed wait, and one call posts them all, so the device is notified once. Whoever sends a
//! last one sends all that wait, whoever made them. So none waits for long, and none is forgotten
//! as long as requests come.
//!
//! A request that is alone does not come here: it looks at one flag.

use super::{
    capsule::{
        Capsule,
        UlpOf, //
    },
    slot::SlotTable,
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

/// Commands that one call posts at most: as many as the block layer plugs for a disk.
const COMMANDS: u16 = 32;

/// When the device learns of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Doorbell {
    /// With a command that follows at once, or by [`Queue::ring`](super::Queue::ring).
    Defer,
    /// Now.
    Ring,
}

impl Doorbell {
    /// What `bd->last` of the block layer asks for: the last request of a batch rings. The
    /// variants are in the order of `bool`, so that this takes no instruction.
    #[inline(always)]
    pub fn from_last(last: bool) -> Self {
        if last {
            Self::Ring
        } else {
            Self::Defer
        }
    }
}

/// The commands of a queue that wait to be sent.
#[pin_data]
pub(super) struct SendBatch<K: SlotTable> {
    #[pin]
    waiting: IrqLock<Batch<K::Queue, Capsule<K>>>,
    /// Whether commands wait. Whoever adds one sends it later, unless another context does before.
    any: RelaxedBool,
}

impl<K: SlotTable<Payload = <UlpOf<K> as Ulp>::Payload>> SendBatch<K> {
    /// Allocates an empty batch. May sleep.
    pub(super) fn new(config: &QueueConfig) -> impl PinInit<Self, Error> {
        let commands = usize::from(config.requests.min(COMMANDS));
        let pieces = config.inline.segments().saturating_add(1);
        let room = BatchCapacity {
            operations: commands,
            // A registration and a send.
            requests: commands.saturating_mul(2),
            pieces: commands.saturating_mul(usize::try_from(pieces).unwrap_or(usize::MAX)),
        };
        try_pin_init!(Self {
            waiting <- {
                let waiting = Batch::new(room)?;
                new_irq_lock!(waiting, "nvme_rdma_transport::SendBatch")
            },
            any: RelaxedBool::new(false),
        }? Error)
    }

    /// Whether commands wait.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.any.get()
    }

    /// Adds a command, and sends all that wait if the `doorbell` is to ring. Rejects those that
    /// cannot be sent. Any context.
    ///
    /// # Errors
    ///
    /// Gives back a capsule that cannot be added.
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

    /// Sends all commands that wait, and rejects those that cannot be sent. Any context.
    pub(super) fn send(&self, queue: &QueuePair<K::Queue>) {
        let mut waiting = self.waiting.lock();
        post(queue, &mut waiting);
        self.any.set(false);
    }

    /// Gives the capsules that wait back to their slots, to be reclaimed. No command is added
    /// any more.
    pub(super) fn abandon(&self, queue: &K::Queue) {
        let mut waiting = self.waiting.lock();
        while let Some(capsule) = waiting.take_back() {
            if let Some(slot) = K::slot(queue, capsule.tag) {
                slot.set_aside(capsule);
            }
        }
    }
}

fn post<K: SlotTable<Payload = <UlpOf<K> as Ulp>::Payload>>(
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
        let Unsent { error, payload } = slot.unposted(queue, Unposted { error, operation });
        if let Some(payload) = payload {
            UlpOf::<K>::finish(UlpOf::<K>::reject(error, payload));
        }
    }
}
