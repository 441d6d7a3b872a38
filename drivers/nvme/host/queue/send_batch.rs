// SPDX-License-Identifier: GPL-2.0

//! Commands that are sent together.
//!
//! The block layer says of each request whether it is the last of those that it has. The commands
//! of the others wait, and all of them are posted by one call, so that the device is told once.
//! Whoever sends a last one sends those that wait, too, whoever made them: so none waits for long,
//! and none is forgotten as long as requests come.
//!
//! A request that is alone does not come here, and finds out by one look at a flag.

use super::{
    capsule::{
        Capsule,
        Payload, //
    },
    PostErrorFn,
    Queue,
    QueueConfig, //
};
use crate::disk::Io;
use kernel::prelude::*;
use nvme_rdma_transport::stats::{DataMode, PostPosition};
use rrdma::{
    block::RequestPayload,
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
        IrqLock,
        RelaxedBool, //
    },
};

/// Commands that are sent by one call at most: as many as the block layer gathers for a disk.
const COMMANDS: u16 = 32;

type Waiting = Batch<Queue, Capsule<RequestPayload<Io>>>;

/// The commands of a queue that wait to be sent.
#[pin_data]
pub(super) struct SendBatch {
    #[pin]
    waiting: IrqLock<Waiting>,
    /// Whether there are any. Who adds one sends it later, or somebody else does before.
    any: RelaxedBool,
}

impl SendBatch {
    /// May sleep.
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
                new_irq_lock!(waiting, "rnvmf::SendBatch")
            },
            any: RelaxedBool::new(false),
        }? Error)
    }

    /// Whether commands wait.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.any.get()
    }

    /// Adds a command that is ready to be sent, and sends all that wait if it is the `last`; what
    /// cannot be sent goes to `refuse`. Any context.
    ///
    /// # Errors
    ///
    /// Gives back what cannot be added.
    #[inline(never)]
    pub(super) fn add(
        &self,
        queue: &QueuePair<Queue>,
        mut capsule: Operation<Capsule<RequestPayload<Io>>>,
        data_mode: DataMode,
        last: bool,
        refuse: PostErrorFn,
    ) -> Result<(), Unposted<Capsule<RequestPayload<Io>>>> {
        let mut waiting = self.waiting.lock();
        if waiting.is_full() {
            post(queue, &mut waiting, refuse);
        }
        capsule.position = if waiting.is_empty() {
            PostPosition::First
        } else {
            PostPosition::Follows
        };
        let added = waiting.push(queue, capsule, |capsule, chain| {
            capsule.chain(data_mode, chain)
        });
        if last {
            post(queue, &mut waiting, refuse);
        }
        self.any.set(!waiting.is_empty());
        added
    }

    /// Sends what waits. Any context.
    pub(super) fn send(&self, queue: &QueuePair<Queue>, refuse: PostErrorFn) {
        let mut waiting = self.waiting.lock();
        post(queue, &mut waiting, refuse);
        self.any.set(false);
    }

    /// Gives what waits back to the slots, to be reclaimed. Nothing is added any more.
    pub(super) fn abandon(&self, queue: &Queue) {
        let mut waiting = self.waiting.lock();
        while let Some(capsule) = waiting.take_back() {
            if let Some(slot) = RequestPayload::slot(queue, capsule.tag) {
                slot.stranded(capsule);
            }
        }
    }
}

fn post(queue: &QueuePair<Queue>, waiting: &mut Waiting, refuse: PostErrorFn) {
    let Err(error) = waiting.post(queue) else {
        return;
    };
    while let Some(operation) = waiting.take_back() {
        let Some(slot) = RequestPayload::slot(queue.context(), operation.tag) else {
            continue;
        };
        let (error, data) = slot.unposted(queue, Unposted { error, operation });
        if let Err(refused) = refuse(error, data) {
            refused.finish();
        }
    }
}
