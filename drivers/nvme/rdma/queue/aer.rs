// SPDX-License-Identifier: GPL-2.0

//! Asynchronous Event Request, which a controller completes when it has an event.
//!
//! The request has a slot of its own, because it is in flight until there is an event. The ULP's
//! thread sends it again after it handled an event, so a target cannot send events faster than they
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

/// Pages of the slot's region, which is unused: the request has no data.
const PAGES: u32 = 1;

/// Response to the request.
pub struct AerCompletion {
    /// The completion queue entry.
    pub completion: Completion,
    /// Time of its arrival.
    pub arrived: Instant<Monotonic>,
}

/// Slot of the request.
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
    /// [`CommandError::Code`] if the request cannot be sent, or the previous one has no response
    /// yet.
    pub(super) fn submit(&self, queue: &QueuePair<K::Queue>) -> Result<(), CommandError> {
        let request = Command::async_event_request();
        match self.slot.submit(queue, request, None) {
            Ok(_) => Ok(()),
            Err(unsent) => Err(CommandError::Code(unsent.error)),
        }
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
