// SPDX-License-Identifier: GPL-2.0

//! Synchronisation primitives that the kernel crate lacks.
//!
//! - [`TimedCompletion`]: completion with a time limit for waits; reusable.
//! - [`OwnedQueue`]: owned workqueue; drained when dropped.
//! - [`Thread`]: kernel thread; dropping it stops it and waits for its end.
//! - [`Claim`]: exclusive access without a lock, for the first claimer.
//! - [`NoPreempt`]: section in which the thread is not preempted.
//! - [`SingleWriterCounter`]: counter that one context adds to.
//! - [`RelaxedBool`]: flag with relaxed ordering.
//! - [`IrqLock`]: spinlock that is held with interrupts disabled.
//! - [`Deadline`]: point in time of the monotonic clock.
//! - [`WaitLimits`]: time limits and abort condition of an operation.
//! - [`RcuSection`]: shows that the caller is in an RCU read-side critical section.
//! - [`RcuSlot`]: optional object that readers access under RCU.
//! - [`Msecs`]: time span in milliseconds.

mod claim;
mod completion;
mod deadline;
mod irq_lock;
mod later_work;
mod lock_class;
mod module_use;
mod msecs;
mod no_preempt;
mod queue;
mod rcu_section;
mod rcu_slot;
mod relaxed_bool;
mod rundown;
mod single_writer_counter;
mod sleeping_drop;
mod thread;
mod wait_limits;

pub use claim::{Claim, ClaimGuard};
pub use completion::TimedCompletion;
pub(crate) use completion::SLOW;
pub use deadline::Deadline;
pub use irq_lock::{IrqLock, IrqLockBackend, IrqLockGuard};
use later_work::later;
pub(crate) use later_work::{wait_for_later, LaterFn};
pub(crate) use lock_class::new_mutex;
pub(crate) use module_use::{ModuleNotifier, ModuleUse, UseKind};
pub use msecs::Msecs;
pub use no_preempt::NoPreempt;
pub use queue::{OwnedQueue, WorkKind};
pub(crate) use rcu_section::RcuReadLock;
pub use rcu_section::{rcu_read, RcuSection};
pub use rcu_slot::{
    RcuSlot,
    Retracted, //
};
pub use relaxed_bool::RelaxedBool;
pub(crate) use rundown::{Rundown, RundownGuard};
pub use single_writer_counter::SingleWriterCounter;
pub(crate) use sleeping_drop::{
    drop_later,
    may_sleep,
    report_leak,
    DropsLater,
    SleepingDrop, //
};
pub use thread::Thread;
pub use wait_limits::WaitLimits;

pub use crate::new_irq_lock;
