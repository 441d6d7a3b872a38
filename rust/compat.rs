// SPDX-License-Identifier: GPL-2.0

//! Differences between the supported kernels.
//!
//! Only this module depends on the version of the kernel.

use pin_init::PinInit;

/// Initialises `slot`.
///
/// # Safety
///
/// - `slot` is valid for writes. The value is not moved, and its memory not reused, before it is
///   dropped.
/// - If this returns an error, the caller treats `slot` as uninitialised.
#[inline]
pub(crate) unsafe fn raw_pin_init<T, E>(slot: *mut T, init: impl PinInit<T, E>) -> Result<(), E> {
    #[cfg(rrdma_kernel_7_3)]
    // SAFETY: By the safety requirements of this function.
    unsafe {
        pin_init::raw_try_init(slot, init)
    }
    #[cfg(not(rrdma_kernel_7_3))]
    // SAFETY: By the safety requirements of this function.
    unsafe {
        init.__pinned_init(slot)
    }
}
