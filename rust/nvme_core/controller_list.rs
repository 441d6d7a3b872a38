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
use rrdma::{
    memory,
    sync::TimedCompletion, //
};

/// An entry of the list.
///
/// # Invariants
///
/// The controller is not freed before the entry is removed.
pub(crate) struct Entry(pub(crate) NonNull<bindings::nvme_ctrl>);

// SAFETY: A pointer that is not tied to a thread.
unsafe impl Send for Entry {}

/// The list, and the number of controllers that exist.
struct Listed {
    entries: KVec<Entry>,
    /// Larger than the number of entries while a controller is freed.
    existing: usize,
}

/// The controllers of a transport. Each is in the list until it is freed.
#[pin_data]
pub(crate) struct ControllerList {
    #[pin]
    listed: Mutex<Listed>,
    /// Completed when a controller was freed.
    #[pin]
    freed: TimedCompletion,
}

impl ControllerList {
    /// Creates an empty list. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                listed <- new_mutex!(Listed {
                    entries: KVec::new(),
                    existing: 0,
                }, "nvme_core::ControllerList"),
                freed <- TimedCompletion::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Adds a controller. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The controller is not freed before [`free`](Self::free).
    pub(crate) unsafe fn add(&self, ctrl: NonNull<bindings::nvme_ctrl>) -> Result {
        let mut listed = self.listed.lock();
        // I/O may wait for the removal of another controller, which waits for the lock.
        // INVARIANT: By the safety requirements of this function.
        memory::without_io(|| listed.entries.push(Entry(ctrl), GFP_KERNEL))?;
        listed.existing = listed.existing.saturating_add(1);
        Ok(())
    }

    /// Removes a controller, calls `free`, which frees it, and then wakes
    /// [`wait_until_freed`](Self::wait_until_freed). Sleeps.
    pub(crate) fn free(&self, ctrl: NonNull<bindings::nvme_ctrl>, free: impl FnOnce()) {
        // From here on, nobody finds the controller.
        self.listed.lock().entries.retain(|entry| entry.0 != ctrl);
        free();
        {
            let mut listed = self.listed.lock();
            listed.existing = listed.existing.saturating_sub(1);
        }
        self.freed.complete();
    }

    /// Returns whether a controller satisfies `test`, which runs with the list locked. Sleeps.
    pub(crate) fn any(&self, test: impl FnMut(&Entry) -> bool) -> bool {
        self.listed.lock().entries.iter().any(test)
    }

    /// Runs `function` with the list locked. Sleeps.
    pub(crate) fn with_lock<R>(&self, function: impl FnOnce() -> R) -> R {
        let _locked = self.listed.lock();
        function()
    }

    /// Waits until all controllers are freed. Sleeps.
    pub(crate) fn wait_until_freed(&self) {
        while self.listed.lock().existing != 0 {
            self.freed.wait();
        }
    }
}
