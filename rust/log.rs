// SPDX-License-Identifier: GPL-2.0

//! The kernel's log.
//!
//! C header: [`include/linux/ratelimit.h`](srctree/include/linux/ratelimit.h)

use crate::bindings;
use kernel::{
    prelude::*,
    str::CStr,
    types::Opaque, //
};

/// How often one may log what others can cause again and again: ten times in five seconds, which
/// is what the kernel takes for a good measure.
///
/// # Invariants
///
/// `state` is initialised.
#[pin_data]
pub struct RateLimit {
    #[pin]
    state: Opaque<bindings::ratelimit_state>,
}

// SAFETY: The state has no ties to a thread.
unsafe impl Send for RateLimit {}

// SAFETY: C has a lock in the state.
unsafe impl Sync for RateLimit {}

impl RateLimit {
    /// One that nothing was logged under.
    pub fn new() -> impl PinInit<Self> {
        // INVARIANT: C initialises all of it.
        pin_init!(Self {
            // SAFETY: The place is valid for writes, and pinned from here on.
            state <- Opaque::ffi_init(|place| unsafe {
                bindings::ratelimit_default_init(place)
            }),
        })
    }

    /// Whether it may be logged once more. When it may again after it might not, the log first has
    /// how often that was, of `what`. Any context but NMI. C: `___ratelimit`.
    #[cold]
    pub fn allows(&self, what: &CStr) -> bool {
        // SAFETY: By the invariant of the type the state is initialised; C reads the name during
        // the call.
        unsafe { bindings::___ratelimit(self.state.get(), what.as_char_ptr()) != 0 }
    }
}
