// SPDX-License-Identifier: GPL-2.0

//! Slots of an admin queue: of the commands that threads other than the ULP's send, and of the
//! Asynchronous Event Request.

use super::{
    capsule::CommandKind,
    queue_core::QueueContext,
    slot::{
        Loaded,
        Slot,
        SlotLookup, //
    },
    sync_command::{
        CommandData,
        CommandError,
        Reply, //
    },
};
use crate::ulp::DataCommand;
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        Instant,
        Monotonic, //
    },
};
use nvme_proto::format::{
    cqe::Completion,
    sqe::Command, //
};
use rrdma::{
    errno, new_irq_lock,
    rdma::{
        pd::ProtectionDomain,
        qp::QueuePair, //
    },
    scatter::Buffer,
    sync::{
        rcu_read,
        IrqLock,
        Msecs,
        TimedCompletion, //
    },
};

/// Largest size of the data of such a command, in bytes.
pub const MAX_DATA: usize = 64 << 10;

/// Largest number of pages of the data, which may straddle one more.
const PAGES: u32 = (MAX_DATA / 4096) as u32 + 1;

/// Slot of an admin channel.
pub(crate) struct AdminSlot<K: CommandKind> {
    pub(super) tag: u16,
    pub(super) slot: Slot<K>,
    pub(super) pending: Arc<PendingReply>,
}

impl<K: SlotLookup> AdminSlot<K> {
    /// Allocates the slot. May sleep.
    pub(super) fn new(
        tag: u16,
        pd: &Arc<ProtectionDomain>,
        pending: Arc<PendingReply>,
    ) -> Result<Self> {
        Ok(Self {
            tag,
            slot: Slot::single(tag, pd, PAGES)?,
            pending,
        })
    }
}

/// Reply that the caller of an admin channel waits for.
#[pin_data]
pub(crate) struct PendingReply {
    #[pin]
    reply: IrqLock<Option<Reply>>,
    /// Completed when there is a reply, or when there will be none.
    #[pin]
    done: TimedCompletion,
}

impl PendingReply {
    /// Creates a pending reply. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                reply <- new_irq_lock!(None, "nvme_rdma_transport::PendingReply"),
                done <- TimedCompletion::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Prepares for a new command. Any context.
    pub(crate) fn reset(&self) {
        self.reply.lock().take();
        self.done.reinit();
    }

    /// Stores the response and ends the wait. Any context.
    pub(super) fn deliver(&self, reply: Reply) {
        *self.reply.lock() = Some(reply);
        self.done.complete();
    }

    /// Ends the wait without a response, because the queue ended. Any context.
    pub(super) fn lost(&self) {
        self.done.complete();
    }

    /// Ends this wait and all later ones. Any context.
    pub(crate) fn close(&self) {
        self.done.complete_all();
    }

    /// Waits until there is a response, or there will be none. Returns false at the time limit.
    /// Sleeps.
    pub(crate) fn wait_timeout(&self, limit: Msecs) -> bool {
        self.done.wait_timeout(limit)
    }

    /// Waits without a time limit. Sleeps.
    pub(crate) fn wait(&self) {
        self.done.wait();
    }

    /// Takes the reply; `None` if there is none. Any context.
    pub(crate) fn take(&self) -> Option<Reply> {
        self.reply.lock().take()
    }
}

/// Response to an Asynchronous Event Request.
pub struct AerCompletion {
    /// The completion queue entry.
    pub completion: Completion,
    /// Time of its arrival.
    pub arrived: Instant<Monotonic>,
}

/// Slot of the Asynchronous Event Request, which a controller completes when it has an event.
///
/// The request has a slot of its own, because it is in flight until there is an event. The ULP's
/// thread sends it again after it handled an event, so a target cannot send events faster than they
/// are handled.
#[pin_data]
pub(super) struct AerSlot<K: CommandKind> {
    pub(super) slot: Slot<K>,
    #[pin]
    completion: IrqLock<Option<AerCompletion>>,
}

impl<K: SlotLookup<Payload = Option<Buffer>, Command = DataCommand>> AerSlot<K> {
    /// Allocates the slot. May sleep.
    pub(super) fn new(tag: u16, pd: &Arc<ProtectionDomain>) -> Result<Pin<KBox<Self>>> {
        KBox::try_pin_init(
            try_pin_init!(Self {
                // The request has no data: the region is unused.
                slot: Slot::single(tag, pd, 1)?,
                completion <- new_irq_lock!(None, "nvme_rdma_transport::AerSlot"),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Sends the request. Any context.
    ///
    /// Nobody sends it again if the post fails, and without it the target reports no events. So each failed post
    /// is reported as a loss of the connection.
    ///
    /// # Errors
    ///
    /// [`CommandError::Code`], with `EBUSY` if the previous request has no response yet.
    pub(super) fn submit(&self, queue: &QueuePair<K::Queue>) -> Result<(), CommandError> {
        let core = queue.context().core();
        let request = Command::async_event_request();
        let (request, nothing) = CommandData::attach(None, request).map_err(CommandError::Code)?;
        let loaded = self.slot.load(core, request, nothing);
        let Loaded {
            capsule, data_mode, ..
        } = loaded.map_err(|unsent| CommandError::Code(unsent.error))?;
        let posted = rcu_read(|section| Slot::post(queue, section, capsule, data_mode));
        posted.map_err(|unposted| {
            let error = self.slot.undo(queue, unposted).error;
            // `undo` has reported all other errors.
            if error != errno::ENOTCONN {
                core.post_failed("Asynchronous Event Request", error);
            }
            CommandError::Code(error)
        })
    }

    /// Stores the response for the ULP's thread, which the caller wakes. Any context.
    pub(super) fn deliver(&self, completion: Completion) {
        *self.completion.lock() = Some(AerCompletion {
            completion,
            arrived: Instant::now(),
        });
    }

    /// Takes the response. Any context.
    pub(super) fn take(&self) -> Option<AerCompletion> {
        self.completion.lock().take()
    }
}
