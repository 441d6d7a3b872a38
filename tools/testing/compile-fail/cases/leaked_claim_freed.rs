// SPDX-License-Identifier: GPL-2.0

//! A claim that is leaked is not freed while its value is used.
//!
//! refused: E0507: cannot move out of `*guard`

use kernel::prelude::*;
use rrdma::sync::ClaimGuard;

pub(crate) fn value(guard: KBox<ClaimGuard<'static, u32>>) -> u32 {
    let guard: &'static ClaimGuard<'static, u32> = KBox::leak(guard);
    let value: &'static u32 = guard;
    #[cfg(misuse)]
    guard.free(); //~
    *value
}
