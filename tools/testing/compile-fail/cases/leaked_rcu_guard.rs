// SPDX-License-Identifier: GPL-2.0

//! A guard of RCU that is leaked outlives its critical section, so it shows none.
//!
//! refused: E0308: mismatched types

use kernel::{
    prelude::*,
    sync::rcu, //
};
use rrdma::sync::{
    rcu_read,
    RcuSlot, //
};

pub(crate) fn look(place: &RcuSlot<u32>, guard: KBox<rcu::Guard>) -> bool {
    let guard: &'static rcu::Guard = KBox::leak(guard);
    rcu_read(|section| {
        #[cfg(misuse)]
        let section = guard;
        let _ = guard;
        place.read(section).is_some() //~
    })
}
