// SPDX-License-Identifier: GPL-2.0

//! Device numbers.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use crate::bindings;
use kernel::{
    error::to_result,
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// Consecutive device numbers of a driver, as in `/proc/devices`; its until this is dropped, for
/// which each [`Node`](super::Node) holds a reference.
///
/// # Invariants
///
/// `count` numbers from `first` on are reserved by `alloc_chrdev_region`.
pub struct Numbers {
    first: bindings::dev_t,
    count: u32,
}

impl Numbers {
    /// Reserves `count` numbers under `name`. May sleep. C: `alloc_chrdev_region`.
    ///
    /// # Errors
    ///
    /// - `EINVAL` for more numbers than there are minor ones.
    /// - `EBUSY` if there is no major number left; `ENOMEM`.
    pub fn new(name: &CStr, count: u32) -> Result<Arc<Self>> {
        let mut first = 0;
        // SAFETY: `first` is valid for the call; the name is copied.
        to_result(unsafe {
            bindings::alloc_chrdev_region(&raw mut first, 0, count, name.as_char_ptr())
        })?;
        // INVARIANT: They were reserved just now. Dropped if there is no memory for it here.
        Ok(Arc::new(Self { first, count }, GFP_KERNEL)?)
    }

    /// The number of place `index`, if there is one.
    pub(super) fn get(&self, index: u32) -> Option<bindings::dev_t> {
        // The minor number is in the low bits, and all of ours have the same major one.
        (index < self.count).then(|| self.first.wrapping_add(index))
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        // SAFETY: By the invariants; no device has one of them, as each holds a reference to us.
        unsafe { bindings::unregister_chrdev_region(self.first, self.count) };
    }
}
