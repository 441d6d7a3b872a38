// SPDX-License-Identifier: GPL-2.0

//! The primitives of `rust/sync`, and stand-ins for what they use.

pub(crate) mod atomic;
#[path = "../../../rust/sync/claim.rs"]
#[expect(dead_code, reason = "only the threads of a model use it")]
mod claim;
mod completion;
mod irq_lock;
mod no_preempt;
pub(crate) mod rcu;
#[path = "../../../rust/sync/rcu_slot.rs"]
#[expect(unused_unsafe, reason = "the stand-ins for unsafe functions are safe")]
mod rcu_slot;
#[path = "../../../rust/sync/relaxed_bool.rs"]
mod relaxed_bool;
#[path = "../../../rust/sync/rundown.rs"]
mod rundown;

pub(crate) use crate::types::ArcBorrow;
pub(crate) use claim::{Claim, ClaimGuard};
pub(crate) use completion::TimedCompletion;
pub(crate) use irq_lock::IrqLock;
pub(crate) use no_preempt::NoPreempt;
pub(crate) use rcu::RcuSection;
pub(crate) use rcu_slot::RcuSlot;
pub(crate) use relaxed_bool::RelaxedBool;
pub(crate) use rundown::Rundown;
pub(crate) use std::sync::Arc;

/// The threads of a model hold no spinlock.
pub(crate) fn may_sleep() -> bool {
    true
}
