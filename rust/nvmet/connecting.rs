// SPDX-License-Identifier: GPL-2.0

//! Submission queues whose Connect command nvmet executes.
//!
//! nvmet finds the controller of an I/O queue by its identifier, and passes the queue to the `install_queue` of the
//! controller's transport. The queue may be that of another transport. nvmet does not tell, so this list does.

use crate::bindings;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// The queues of a registration whose Connect command nvmet executes.
#[pin_data]
pub(crate) struct ConnectingQueues {
    /// Addresses, which are only compared. A queue is in the list once for each of its commands.
    #[pin]
    list: Mutex<KVec<usize>>,
}

impl ConnectingQueues {
    /// Creates an empty list. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                list <- new_mutex!(KVec::new(), "nvmet::ConnectingQueues"),
            }),
            GFP_KERNEL,
        )
    }

    /// Adds a queue. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn add(&self, sq: *mut bindings::nvmet_sq) -> Result {
        Ok(self.list.lock().push(sq.addr(), GFP_KERNEL)?)
    }

    /// Removes a queue that was added, once. May sleep.
    pub(crate) fn remove(&self, sq: *mut bindings::nvmet_sq) {
        let mut list = self.list.lock();
        if let Some(place) = list.iter().position(|known| *known == sq.addr()) {
            // Never fails: the place is that of an entry.
            let _ = list.remove(place);
        }
    }

    /// Returns whether a queue was added. May sleep.
    pub(crate) fn has(&self, sq: *mut bindings::nvmet_sq) -> bool {
        self.list.lock().contains(&sq.addr())
    }
}
