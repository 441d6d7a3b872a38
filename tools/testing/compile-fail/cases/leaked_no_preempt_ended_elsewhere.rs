// SPDX-License-Identifier: GPL-2.0

//! A section without preemption belongs to its thread, also if its guard is leaked.
//!
//! refused: E0277: `*mut ()` cannot be sent between threads safely

use kernel::prelude::*;
use rrdma::sync::NoPreempt;

fn elsewhere<T: Send + 'static>(_work: T) {}

pub(crate) fn end(section: KBox<NoPreempt>) {
    let section: &'static mut NoPreempt = KBox::leak(section);
    #[cfg(not(misuse))]
    elsewhere(core::ptr::from_mut(section).addr());
    #[cfg(misuse)]
    elsewhere(section); //~
}
