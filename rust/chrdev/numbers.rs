// SPDX-License-Identifier: GPL-2.0

//! Device numbers.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use crate::{
    bindings,
    sync::{
        drop_later,
        DropsLater,
        SleepingDrop, //
    },
};
use kernel::{
    error::to_result,
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// Consecutive device numbers of a driver, as in `/proc/devices`. Each [`Node`](super::Node) holds
/// a reference. May be dropped in any context.
pub struct Numbers(SleepingDrop<Reserved>);

/// Reserved device numbers. Dropping this sleeps.
///
/// # Invariants
///
/// `alloc_chrdev_region()` reserved `count` numbers from `first`.
struct Reserved {
    first: bindings::dev_t,
    count: u32,
}

impl Numbers {
    /// Reserves `count` numbers under `name`. May sleep. C: `alloc_chrdev_region()`.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if `count` is 0 or exceeds the number of minor numbers.
    /// - `EBUSY` if no major number is free.
    /// - `ENOMEM`.
    pub fn new(name: &CStr, count: u32) -> Result<Arc<Self>> {
        // C would reserve a major number, which the release of no numbers does not free.
        if count == 0 {
            return Err(EINVAL);
        }
        let mut first = 0;
        // SAFETY: `first` is valid for the call. C copies the name.
        to_result(unsafe {
            bindings::alloc_chrdev_region(&raw mut first, 0, count, name.as_char_ptr())
        })?;
        // INVARIANT: The numbers were just reserved. They are released if this allocation fails.
        let reserved = SleepingDrop::new(Reserved { first, count });
        Ok(Arc::new(Self(reserved), GFP_KERNEL)?)
    }

    /// Returns number `index`; `None` if it is out of range.
    pub(super) fn get(&self, index: u32) -> Option<bindings::dev_t> {
        // The minor number is in the low bits, and all numbers have the same major number.
        (index < self.0.count).then(|| self.0.first.wrapping_add(index))
    }
}

impl DropsLater for Reserved {
    #[inline(never)]
    fn drop_later(self) {
        drop_later("region of device numbers", self);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, the numbers are reserved. Each node holds a reference to
        // this, so none of them is in use.
        unsafe { bindings::unregister_chrdev_region(self.first, self.count) };
    }
}
