// SPDX-License-Identifier: GPL-2.0

//! What differs between the kernels that the crate is built for.
//!
//! Nothing else asks which kernel it is: the rest of the crate calls this.

use pin_init::PinInit;

/// Initialises `slot`.
///
/// # Safety
///
/// - `slot` is valid for writes, and what is made there is neither moved nor its memory
///   used for something else until it is dropped.
/// - If an error is returned nothing was made.
#[inline]
pub(crate) unsafe fn raw_pin_init<T, E>(slot: *mut T, init: impl PinInit<T, E>) -> Result<(), E> {
    #[cfg(rrdma_kernel_7_3)]
    // SAFETY: By the requirements of this function.
    unsafe {
        pin_init::raw_try_init(slot, init)
    }
    #[cfg(not(rrdma_kernel_7_3))]
    // SAFETY: By the requirements of this function.
    unsafe {
        init.__pinned_init(slot)
    }
}
