// SPDX-License-Identifier: GPL-2.0

//! Sections without preemption.
//!
//! C header: [`include/linux/preempt.h`](srctree/include/linux/preempt.h)

use kernel::types::NotThreadSafe;

/// A section in which the kernel does not preempt the calling thread (`preempt_disable()`). Dropping it ends the
/// section. Any context.
///
/// It is for short sections in which a thread has what other threads leave to it, such as a
/// [`Claim`](super::Claim). As with a spinlock, a thread must not sleep meanwhile.
///
/// Does nothing on a kernel with `CONFIG_PREEMPT_RT`. There, a thread may sleep for any spinlock, so it can be
/// preempted.
#[must_use = "the section ends at once if the guard is unused"]
pub struct NoPreempt(NotThreadSafe);

impl NoPreempt {
    /// Begins a section.
    #[inline(always)]
    pub fn begin() -> Self {
        #[cfg(not(CONFIG_PREEMPT_RT))]
        // SAFETY: May be called in any context. `drop` ends the section.
        unsafe {
            crate::bindings::preempt_disable()
        };
        Self(NotThreadSafe)
    }
}

impl Drop for NoPreempt {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(not(CONFIG_PREEMPT_RT))]
        // SAFETY: `begin` began the section. The guard is not `Send`, so this is the same thread.
        unsafe {
            crate::bindings::preempt_enable()
        };
    }
}
