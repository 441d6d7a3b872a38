// SPDX-License-Identifier: GPL-2.0

//! Synchronisation that the kernel crate lacks.
//!
//! - [`TimedCompletion`]: waits with a time limit, and can be used again.
//! - [`OwnedQueue`]: a workqueue of one's own, drained when dropped.
//! - [`Thread`]: a thread of one's own, waited for when dropped.
//! - [`Claim`]: exclusive access to a value for whoever comes first.
//! - [`SingleWriterCounter`]: a number that one adds to and anybody reads.
//! - [`RelaxedBool`]: something that is so or not.
//! - [`IrqLock`]: a spinlock that is also taken in interrupt context.
//! - [`Deadline`]: a moment by which something must be over.
//! - [`WaitLimits`]: how long to wait for others, and whether to go on.
//! - [`RcuSlot`]: an object that readers use without a lock.
//! - [`Msecs`]: a span of time in milliseconds.

mod claim;
mod completion;
mod deadline;
mod irq_lock;
mod msecs;
mod queue;
mod rcu_slot;
mod relaxed_bool;
mod rundown;
mod single_writer_counter;
mod thread;
mod wait_limits;

pub use claim::{Claim, ClaimGuard};
pub use completion::TimedCompletion;
pub use deadline::Deadline;
pub use irq_lock::{IrqLock, IrqLockBackend, IrqLockGuard};
pub use msecs::Msecs;
pub use queue::{OwnedQueue, QueueFlags};
pub use rcu_slot::RcuSlot;
pub use relaxed_bool::RelaxedBool;
pub(crate) use rundown::{Rundown, RundownGuard};
pub use single_writer_counter::SingleWriterCounter;
pub use thread::Thread;
pub use wait_limits::WaitLimits;

pub use crate::new_irq_lock;
