// SPDX-License-Identifier: GPL-2.0

//! Completions with a time limit.
//!
//! C header: [`include/linux/completion.h`](srctree/include/linux/completion.h)

use super::Msecs;
use crate::bindings;
use kernel::{prelude::*, types::Opaque};

/// A completion that can be waited for with a time limit, and used again.
///
/// Each [`complete`](Self::complete) lets one wait pass, now or later;
/// [`complete_all`](Self::complete_all) lets all pass, until
/// [`reinit`](Self::reinit).
///
/// Waits are in `TASK_IDLE`: no signal ends them, they count neither as load nor
/// as a hung task, so a worker may wait for as long as the peer takes. They
/// sleep; all else may be done in any context.
#[pin_data]
pub struct TimedCompletion {
    #[pin]
    inner: Opaque<bindings::completion>,
}

// SAFETY: A completion may be used by any thread.
unsafe impl Send for TimedCompletion {}

// SAFETY: A completion has a lock of its own, which all of the methods take.
unsafe impl Sync for TimedCompletion {}

impl TimedCompletion {
    /// Makes one that is not completed. C: `init_completion`.
    pub fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            inner <- Opaque::ffi_init(|slot: *mut bindings::completion| {
                // SAFETY: `slot` is valid for writes.
                unsafe { bindings::init_completion(slot) };
            }),
        })
    }

    /// The C object, valid for as long as `self` lives.
    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::completion {
        self.inner.get()
    }

    /// Lets one wait pass. C: `complete`.
    #[inline]
    pub fn complete(&self) {
        // SAFETY: The completion was initialised by `new`.
        unsafe { bindings::complete(self.inner.get()) };
    }

    /// Lets all waits pass, present and future ones. C: `complete_all`.
    #[inline]
    pub fn complete_all(&self) {
        // SAFETY: The completion was initialised by `new`.
        unsafe { bindings::complete_all(self.inner.get()) };
    }

    /// Whether a wait would pass at once. Any context. C: `completion_done`.
    #[inline]
    pub fn is_completed(&self) -> bool {
        // SAFETY: The completion was initialised by `new`.
        unsafe { bindings::completion_done(self.inner.get()) }
    }

    /// Forgets what was completed so far. Waits that are asleep go on.
    ///
    /// A `complete` at the same time comes either before or after it; who needs
    /// to know which, has to order them. C: `reinit_completion`, but locked.
    #[inline]
    pub fn reinit(&self) {
        // SAFETY: The completion was initialised by `new`.
        unsafe { bindings::reinit_completion_locked(self.inner.get()) };
    }

    /// Waits without a limit. Sleeps.
    #[inline]
    pub fn wait(&self) {
        // SAFETY: The completion was initialised by `new`.
        unsafe { bindings::wait_for_completion_idle(self.inner.get()) };
    }

    /// Waits at most for `limit`; returns whether it was completed. Sleeps.
    #[inline]
    #[must_use = "a wait that timed out has to be told from one that did not"]
    pub fn wait_timeout(&self, limit: Msecs) -> bool {
        // SAFETY: The completion was initialised by `new`.
        unsafe { bindings::wait_for_completion_idle_timeout(self.inner.get(), limit.to_jiffies()) }
    }
}
