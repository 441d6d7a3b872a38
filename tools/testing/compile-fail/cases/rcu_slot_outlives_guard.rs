// SPDX-License-Identifier: GPL-2.0

//! A value read under RCU cannot be used after the read-side critical section.
//!
//! refused: E0505: cannot move out of `guard` because it is borrowed

use kernel::sync::rcu;
use rrdma::sync::RcuSlot;

pub(crate) fn look(place: &RcuSlot<u32>) -> u32 {
    let guard = rcu::read_lock();
    let found = place.read(&guard);
    let value = found.as_deref().copied();
    drop(guard); //~
    #[cfg(misuse)]
    let value = found.as_deref().copied();
    value.unwrap_or(0)
}
