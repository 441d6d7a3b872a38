// SPDX-License-Identifier: GPL-2.0

//! A value read under RCU cannot be used after the read-side critical section.
//!
//! refused: E0521: borrowed data escapes outside of closure

use kernel::sync::ArcBorrow;
use rrdma::sync::{
    rcu_read,
    RcuSlot, //
};

pub(crate) fn look(place: &RcuSlot<u32>) -> u32 {
    let mut kept: Option<ArcBorrow<'_, u32>> = None;
    let value = rcu_read(|section| {
        let found = place.read(section);
        let value = found.as_deref().copied();
        #[cfg(misuse)]
        {
            kept = found; //~
        }
        value
    });
    let kept = kept.take().as_deref().copied();
    kept.or(value).unwrap_or(0)
}
