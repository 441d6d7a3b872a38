// SPDX-License-Identifier: GPL-2.0

//! Rundown protection: counts the users of an object until it is closed, then waits for them.

use super::{
    IrqLock,
    TimedCompletion, //
};
use crate::new_irq_lock;
use kernel::prelude::*;

/// Counts users of an object until it is closed, once and finally. Closing refuses new users;
/// [`wait`](Self::wait) waits for the present ones.
///
/// The wait ends when the last user is about to leave. The last instructions of its `drop` may
/// still run, so the memory of the rundown itself needs other protection before it is freed.
#[pin_data]
pub(crate) struct Rundown {
    #[pin]
    inside: IrqLock<Inside>,
    /// Completed when the rundown is closed and has no users.
    #[pin]
    empty: TimedCompletion,
}

struct Inside {
    count: usize,
    closed: bool,
}

impl Rundown {
    /// Creates an open rundown without users.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            inside <- new_irq_lock!(Inside { count: 0, closed: false }, "rrdma::Rundown"),
            empty <- TimedCompletion::new(),
        })
    }

    /// Adds a user; returns `None` if the rundown is closed. Any context.
    pub(crate) fn enter(&self) -> Option<RundownGuard<'_>> {
        // INVARIANT: `add` has counted the user.
        self.add().then(|| RundownGuard(self))
    }

    /// Adds a user, which must be [removed](Self::remove); returns `false` and adds none if the
    /// rundown is closed. Any context.
    pub(crate) fn add(&self) -> bool {
        let mut inside = self.inside.lock();
        if !inside.closed {
            inside.count = inside.count.saturating_add(1);
        }
        !inside.closed
    }

    /// Adds a user next to a present one, even if the rundown is closed. Any context.
    pub(crate) fn add_next(&self) {
        let mut inside = self.inside.lock();
        inside.count = inside.count.saturating_add(1);
    }

    /// Removes a user. Any context.
    pub(crate) fn remove(&self) {
        let mut inside = self.inside.lock();
        inside.count = inside.count.saturating_sub(1);
        if inside.count == 0 && inside.closed {
            self.empty.complete_all();
        }
    }

    /// Returns whether new users are refused. Any context.
    pub(crate) fn is_closed(&self) -> bool {
        self.inside.lock().closed
    }

    /// Refuses new users; returns whether the rundown was open. Any context.
    pub(crate) fn close(&self) -> bool {
        let mut inside = self.inside.lock();
        let was_open = !core::mem::replace(&mut inside.closed, true);
        if inside.count == 0 {
            self.empty.complete_all();
        }
        was_open
    }

    /// Waits until a closed rundown has no users. Calls `slow` with their number if that takes longer than
    /// 10 s. Sleeps.
    pub(crate) fn wait(&self, slow: impl FnOnce(usize)) {
        self.empty.wait_or(|| slow(self.inside.lock().count));
    }
}

/// A user of a rundown; leaves when dropped.
///
/// # Invariants
///
/// It is counted in `inside` of its rundown.
pub(crate) struct RundownGuard<'a>(&'a Rundown);

impl Drop for RundownGuard<'_> {
    fn drop(&mut self) {
        self.0.remove();
    }
}
