// SPDX-License-Identifier: GPL-2.0

//! The guard of a lock that disables interrupts belongs to its thread, also if it is leaked.
//!
//! refused: E0277: `*mut ()` cannot be sent between threads safely

use kernel::prelude::*;
use rrdma::sync::IrqLockGuard;

fn elsewhere<T: Send + 'static>(_work: T) {}

pub(crate) fn unlock(guard: KBox<IrqLockGuard<'static, u32>>) {
    let guard: &'static mut IrqLockGuard<'static, u32> = KBox::leak(guard);
    #[cfg(not(misuse))]
    elsewhere(**guard);
    #[cfg(misuse)]
    elsewhere(guard); //~
}
