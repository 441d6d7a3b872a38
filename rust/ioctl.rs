// SPDX-License-Identifier: GPL-2.0

//! ioctl calls of processes.
//!
//! C headers: [`include/linux/fs.h`](srctree/include/linux/fs.h),
//! [`include/linux/capability.h`](srctree/include/linux/capability.h)

use crate::bindings;
use kernel::{
    prelude::*,
    types::NotThreadSafe,
    uaccess::UserPtr, //
};

/// An ioctl call. It is tied to the calling thread, which handles it.
pub struct Call {
    number: u32,
    argument: usize,
    _in_process: NotThreadSafe,
}

impl Call {
    /// Wraps a call from C.
    pub(crate) fn new(number: u32, argument: usize) -> Self {
        Self {
            number,
            argument,
            _in_process: NotThreadSafe,
        }
    }

    /// Returns the number of the ioctl (`cmd`).
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the argument as a user pointer. It may be any value.
    pub fn argument(&self) -> UserPtr {
        UserPtr::from_addr(self.argument)
    }

    /// Returns whether the process has `CAP_SYS_ADMIN`. The audit system records a failed check, so
    /// call it only if it matters. C: `capable()`.
    pub fn by_administrator(&self) -> bool {
        // SAFETY: Called in the context of the process, with its own credentials.
        unsafe { bindings::capable(bindings::CAP_SYS_ADMIN as c_int) }
    }
}
