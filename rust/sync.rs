// SPDX-License-Identifier: GPL-2.0

//! Synchronisation that the kernel crate lacks.
//!
//! - [`TimedCompletion`]: waits with a time limit, and can be used again.
//! - [`OwnedQueue`]: a workqueue of one's own, drained when dropped.
//! - [`Thread`]: a thread of one's own, waited for when dropped.
//! - [`Claim`]: exclusive access to a value for whoever comes first.
//! - [`Counter`]: a number that one adds to and anybody reads.
//! - [`Flag`]: something that is so or not.
//! - [`IrqLock`]: a spinlock that is also taken in interrupt context.
//! - [`Deadline`]: a moment by which something must be over.
//! - [`Patience`]: how long to wait for others, and whether to go on.
//! - [`Published`]: an object that readers use without a lock.
//! - [`Msecs`]: a span of time in milliseconds.

mod claim;
mod completion;
mod counter;
mod deadline;
mod flag;
mod gate;
mod irq_lock;
mod msecs;
mod patience;
mod published;
mod queue;
mod thread;

pub use claim::{Claim, ClaimGuard};
pub use completion::TimedCompletion;
pub use counter::Counter;
pub use deadline::Deadline;
pub use flag::Flag;
pub(crate) use gate::{Entered, Gate};
pub use irq_lock::{IrqLock, IrqLockBackend, IrqLockGuard};
pub use msecs::Msecs;
pub use patience::Patience;
pub use published::Published;
pub use queue::{OwnedQueue, QueueFlags};
pub use thread::Thread;

pub use crate::new_irq_lock;
