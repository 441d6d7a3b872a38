// SPDX-License-Identifier: GPL-2.0

//! The request that a controller answers when it has something to tell.
//!
//! It has a slot of its own, as it is in flight for as long as there is nothing to tell. The
//! controller's thread sends it again when it has seen to what it was told, so a target cannot
//! tell more than is seen to.

use super::{
    CommandError,
    Queue, //
    QueueConfig,
};
use kernel::{
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    },
};
use nvme_proto::format::{cqe, sqe::Command};
use rrdma::rdma::qp::QueuePair;

/// Pages of the region of its slot, which it does not use: it has no data.
pub(super) const PAGES: u32 = 1;

/// A response to the request, and when it came.
pub(crate) struct Event {
    pub(crate) completion: cqe::Completion,
    pub(crate) moment: Instant<Monotonic>,
}

impl Queue {
    /// The last tag: it comes after those of the guests.
    pub(super) fn aer_tag(config: &QueueConfig) -> u16 {
        config.requests.saturating_add(1 + super::DESKS as u16)
    }

    /// Asks to be told of the next event; the response is for [`take_event`](Self::take_event).
    /// Any context.
    ///
    /// # Errors
    ///
    /// [`CommandError::Code`] if it could not be sent, or the one before was not answered.
    pub(crate) fn submit_aer(queue: &QueuePair<Self>) -> Result<(), CommandError> {
        let aer = queue.context().aer.as_ref();
        let aer = aer.ok_or(CommandError::Code(EINVAL))?;
        match aer.submit(queue, Command::async_event_request(), None, 0) {
            Ok(_) => Ok(()),
            Err((error, _)) => Err(CommandError::Code(error)),
        }
    }

    /// The response to the request has arrived. Any context.
    pub(super) fn aer_done(&self, completion: cqe::Completion) {
        *self.event.lock() = Some(Event {
            completion,
            moment: Instant::now(),
        });
        self.notifier.wake();
    }

    /// The response to the request, once. Any context.
    pub(crate) fn take_event(&self) -> Option<Event> {
        self.event.lock().take()
    }
}
