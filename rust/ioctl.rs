// SPDX-License-Identifier: GPL-2.0

//! What a process asks of a device that it has open.
//!
//! C headers: [`include/linux/fs.h`](srctree/include/linux/fs.h),
//! [`include/linux/capability.h`](srctree/include/linux/capability.h)

use crate::bindings;
use kernel::{
    prelude::*,
    types::NotThreadSafe,
    uaccess::UserPtr, //
};

/// A call of `ioctl`. It runs in the process that made it, and stays there.
pub struct Call {
    number: u32,
    argument: usize,
    _in_process: NotThreadSafe,
}

impl Call {
    /// A call that C has just made.
    pub(crate) fn new(number: u32, argument: usize) -> Self {
        Self {
            number,
            argument,
            _in_process: NotThreadSafe,
        }
    }

    /// What is asked for.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The argument as an address in the memory of the process, which it need not be.
    pub fn argument(&self) -> UserPtr {
        UserPtr::from_addr(self.argument)
    }

    /// Whether the process may administer the system (`CAP_SYS_ADMIN`). One that may not is
    /// told to the audit system, so ask only where it matters. C: `capable`.
    pub fn by_administrator(&self) -> bool {
        // SAFETY: Called by a process, whose credentials are its own.
        unsafe { bindings::capable(bindings::CAP_SYS_ADMIN as c_int) }
    }
}
