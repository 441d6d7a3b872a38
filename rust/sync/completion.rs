// SPDX-License-Identifier: GPL-2.0

//! Completions with a time limit.
//!
//! C header: [`include/linux/completion.h`](srctree/include/linux/completion.h)

use super::Msecs;
use crate::bindings;
use kernel::{prelude::*, types::Opaque};

/// The wait after which [`TimedCompletion::wait_or`] calls its closure.
pub(crate) const SLOW: Msecs = Msecs::from_secs(10);

/// A reusable completion with a time limit for waits. C: `struct completion`.
///
/// [`complete`](Self::complete) releases one present or future waiter.
/// [`complete_all`](Self::complete_all) releases all, until [`reinit`](Self::reinit).
///
/// Waits sleep in `TASK_IDLE`, except [`wait_interruptible_timeout`](Self::wait_interruptible_timeout):
/// signals do not interrupt them, and they count neither as load nor as a hung task. So a worker may wait
/// for a peer for any time. All other methods may be called in any context.
///
/// # Invariants
///
/// `inner` is an initialised `struct completion`.
#[pin_data]
pub struct TimedCompletion {
    #[pin]
    inner: Opaque<bindings::completion>,
}

// SAFETY: Any thread may use and free a completion.
unsafe impl Send for TimedCompletion {}

// SAFETY: All methods take the lock of the completion.
unsafe impl Sync for TimedCompletion {}

impl TimedCompletion {
    /// Creates a completion that is not completed. C: `init_completion()`.
    pub fn new() -> impl PinInit<Self> {
        // INVARIANT: `init_completion()` initialises it before anyone can use the object.
        pin_init!(Self {
            inner <- Opaque::ffi_init(|slot: *mut bindings::completion| {
                // SAFETY: `slot` is valid for writes.
                unsafe { bindings::init_completion(slot) };
            }),
        })
    }

    /// Returns the C object, which is valid while `self` exists.
    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::completion {
        self.inner.get()
    }

    /// Releases one waiter. C: `complete()`.
    #[inline]
    pub fn complete(&self) {
        // SAFETY: By the type invariant, the completion is initialised.
        unsafe { bindings::complete(self.inner.get()) };
    }

    /// Releases all present and future waiters. C: `complete_all()`.
    #[inline]
    pub fn complete_all(&self) {
        // SAFETY: By the type invariant, the completion is initialised.
        unsafe { bindings::complete_all(self.inner.get()) };
    }

    /// Returns whether a wait would return at once. Any context. C: `completion_done()`.
    #[inline]
    pub fn is_completed(&self) -> bool {
        // SAFETY: By the type invariant, the completion is initialised.
        unsafe { bindings::completion_done(self.inner.get()) }
    }

    /// Resets the completion. Present waiters continue to wait.
    ///
    /// May run concurrently with `complete`; callers that depend on the order must serialise both.
    /// C: `reinit_completion()`, under the lock of the completion.
    #[inline]
    pub fn reinit(&self) {
        // SAFETY: By the type invariant, the completion is initialised.
        unsafe { bindings::reinit_completion_locked(self.inner.get()) };
    }

    /// Waits without a time limit. Sleeps.
    #[inline]
    pub fn wait(&self) {
        // SAFETY: By the type invariant, the completion is initialised.
        unsafe { bindings::wait_for_completion_idle(self.inner.get()) };
    }

    /// Waits as [`wait`](Self::wait) does. If that takes longer than 10 s, calls `slow` once, which may
    /// log for what: a driver may have kept an object that is waited for.
    pub(crate) fn wait_or(&self, slow: impl FnOnce()) {
        if !self.wait_timeout(SLOW) {
            slow();
            self.wait();
        }
    }

    /// Waits for at most `limit`. Returns `false` on a timeout. Sleeps.
    #[inline]
    #[must_use = "the caller must handle a timeout"]
    pub fn wait_timeout(&self, limit: Msecs) -> bool {
        // SAFETY: By the type invariant, the completion is initialised.
        unsafe { bindings::wait_for_completion_idle_timeout(self.inner.get(), limit.to_jiffies()) }
    }

    /// Waits for at most `limit`, or until the calling thread has a signal. Returns `false` on a timeout.
    /// Sleeps. C: `wait_for_completion_interruptible_timeout()`.
    ///
    /// Kernel threads and work items get no signals.
    ///
    /// # Errors
    ///
    /// `ERESTARTSYS` if a signal came first.
    #[must_use = "the caller must handle a timeout and a signal"]
    pub fn wait_interruptible_timeout(&self, limit: Msecs) -> Result<bool> {
        // SAFETY: By the type invariant, the completion is initialised.
        let left = unsafe {
            bindings::wait_for_completion_interruptible_timeout(
                self.inner.get(),
                limit.to_jiffies(),
            )
        };
        match left {
            0 => Ok(false),
            1.. => Ok(true),
            _ => Err(ERESTARTSYS),
        }
    }
}
