// SPDX-License-Identifier: GPL-2.0

//! The Asynchronous Event Request, which a controller answers when it has an event.
//!
//! The request has a slot of its own, as it is in flight for as long as there is no event. The
//! ULP's thread sends it again after it handled an event, so a target cannot send more events than
//! are handled.

use super::{
    capsule::CommandKind,
    slot::{
        Slot,
        SlotTable, //
    },
    sync_command::CommandError,
};
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
    new_irq_lock,
    rdma::{
        pd::ProtectionDomain,
        qp::QueuePair, //
    },
    sync::IrqLock,
};

/// Pages of the region of the slot, which is not used: the request has no data.
const PAGES: u32 = 1;

/// A response to the request.
pub struct AerCompletion {
    /// The completion queue entry.
    pub completion: Completion,
    /// When it arrived.
    pub arrived: Instant<Monotonic>,
}

/// The slot of the request.
#[pin_data]
pub(super) struct AerSlot<K: CommandKind> {
    pub(super) slot: Slot<K>,
    #[pin]
    completion: IrqLock<Option<AerCompletion>>,
}

impl<K: SlotTable> AerSlot<K> {
    /// Allocates the slot. May sleep.
    pub(super) fn new(tag: u16, pd: &Arc<ProtectionDomain>) -> Result<Pin<KBox<Self>>> {
        KBox::try_pin_init(
            try_pin_init!(Self {
                slot: Slot::new(tag, pd, PAGES)?,
                completion <- new_irq_lock!(None, "nvme_rdma_transport::AerSlot"),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Sends the request. Any context.
    ///
    /// # Errors
    ///
    /// [`CommandError::Code`] if it could not be sent, or the one before was not answered.
    pub(super) fn submit(&self, queue: &QueuePair<K::Queue>) -> Result<(), CommandError> {
        let request = Command::async_event_request();
        match self.slot.submit(queue, request, None) {
            Ok(_) => Ok(()),
            Err(unsent) => Err(CommandError::Code(unsent.error)),
        }
    }

    /// Keeps the response for the ULP's thread, to be woken by the caller. Any context.
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
