// SPDX-License-Identifier: GPL-2.0

//! Rate limits for log messages.
//!
//! C header: [`include/linux/ratelimit.h`](srctree/include/linux/ratelimit.h)

use crate::bindings;
use kernel::{
    prelude::*,
    str::CStr,
    types::Opaque, //
};

/// A rate limit for messages that others can cause repeatedly. The interval and burst are the
/// kernel's defaults: 10 messages in 5 seconds. C: `struct ratelimit_state`.
///
/// # Invariants
///
/// `state` is initialised.
#[pin_data]
pub struct RateLimit {
    #[pin]
    state: Opaque<bindings::ratelimit_state>,
}

// SAFETY: The state is not tied to a thread.
unsafe impl Send for RateLimit {}

// SAFETY: C locks the state.
unsafe impl Sync for RateLimit {}

impl RateLimit {
    /// Creates a rate limit without messages.
    pub fn new() -> impl PinInit<Self> {
        // INVARIANT: `ratelimit_default_init()` initialises the whole state.
        pin_init!(Self {
            // SAFETY: `place` is valid for writes, and pinned from here on.
            state <- Opaque::ffi_init(|place| unsafe {
                bindings::ratelimit_default_init(place)
            }),
        })
    }

    /// Returns whether another message may be logged. At the end of an interval with suppressed
    /// messages, C logs their number and `what`. Any context but NMI. C: `___ratelimit()`.
    #[cold]
    pub fn allows(&self, what: &CStr) -> bool {
        // SAFETY: By the type invariants, the state is initialised. C reads the name only during
        // the call.
        unsafe { bindings::___ratelimit(self.state.get(), what.as_char_ptr()) != 0 }
    }
}
