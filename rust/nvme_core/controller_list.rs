// SPDX-License-Identifier: GPL-2.0

//! The controllers of a transport.

use crate::bindings;
use core::ptr::NonNull;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use rrdma::sync::TimedCompletion;

/// An entry of the list.
///
/// # Invariants
///
/// The controller is not freed before the entry is removed.
pub(crate) struct Entry(pub(crate) NonNull<bindings::nvme_ctrl>);

// SAFETY: A pointer that is not tied to a thread.
unsafe impl Send for Entry {}

/// The controllers of a transport, until they are freed.
#[pin_data]
pub(crate) struct ControllerList {
    #[pin]
    controllers: Mutex<KVec<Entry>>,
    /// Completed when a controller leaves the list.
    #[pin]
    left: TimedCompletion,
}

impl ControllerList {
    /// Creates an empty list. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                controllers <- new_mutex!(KVec::new(), "nvme_core::ControllerList"),
                left <- TimedCompletion::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Adds a controller. Sleeps.
    ///
    /// # Safety
    ///
    /// The controller is not freed before [`remove`](Self::remove).
    pub(crate) unsafe fn add(&self, ctrl: NonNull<bindings::nvme_ctrl>) -> Result {
        // INVARIANT: By the safety requirements of this function.
        self.controllers.lock().push(Entry(ctrl), GFP_KERNEL)?;
        Ok(())
    }

    /// Removes a controller. Sleeps.
    pub(crate) fn remove(&self, ctrl: NonNull<bindings::nvme_ctrl>) {
        self.controllers.lock().retain(|entry| entry.0 != ctrl);
        self.left.complete();
    }

    /// Returns whether a controller satisfies `test`, which runs with the list locked. Sleeps.
    pub(crate) fn any(&self, test: impl FnMut(&Entry) -> bool) -> bool {
        self.controllers.lock().iter().any(test)
    }

    /// Runs `function` with the list locked. Sleeps.
    pub(crate) fn with_lock<R>(&self, function: impl FnOnce() -> R) -> R {
        let _locked = self.controllers.lock();
        function()
    }

    /// Waits until the list is empty. Sleeps.
    pub(crate) fn wait_until_empty(&self) {
        while !self.controllers.lock().is_empty() {
            self.left.wait();
        }
    }
}
