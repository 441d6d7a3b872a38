// SPDX-License-Identifier: GPL-2.0

//! Rundown: users of an object are counted until it is closed, and then waited for.

use super::{
    IrqLock,
    TimedCompletion, //
};
use crate::new_irq_lock;
use kernel::prelude::*;

/// Counts users until it is closed, once and for good. Closing keeps new users out, and those
/// inside can be waited for.
///
/// The wait ends when the last one is about to be out: whoever frees the object has to see to it
/// in another way that it is.
#[pin_data]
pub(crate) struct Rundown {
    #[pin]
    inside: IrqLock<Inside>,
    /// It is closed, and nobody is inside.
    #[pin]
    empty: TimedCompletion,
}

struct Inside {
    count: usize,
    closed: bool,
}

impl Inside {
    /// Of an open one. Not inlined into drivers, where its name would be another one, and lockdep
    /// wants that of a class to be at one address.
    #[inline(never)]
    fn lock() -> impl PinInit<IrqLock<Self>> {
        new_irq_lock!(
            Self {
                count: 0,
                closed: false
            },
            "rrdma::Rundown"
        )
    }
}

impl Rundown {
    /// An open one, without users.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            inside <- Inside::lock(),
            empty <- TimedCompletion::new(),
        })
    }

    /// Adds a user, unless it is closed. Any context.
    pub(crate) fn enter(&self) -> Option<RundownGuard<'_>> {
        let mut inside = self.inside.lock();
        if inside.closed {
            return None;
        }
        inside.count = inside.count.checked_add(1)?;
        Some(RundownGuard(self))
    }

    /// Keeps new ones out; whether it was open. Any context.
    pub(crate) fn close(&self) -> bool {
        let mut inside = self.inside.lock();
        let was_open = !core::mem::replace(&mut inside.closed, true);
        if inside.count == 0 {
            self.empty.complete_all();
        }
        was_open
    }

    /// Waits until nobody is inside of one that was closed. Sleeps.
    pub(crate) fn wait(&self) {
        self.empty.wait();
    }
}

/// Whoever has this is inside.
///
/// # Invariants
///
/// Is counted in `inside` of its rundown.
pub(crate) struct RundownGuard<'a>(&'a Rundown);

impl Drop for RundownGuard<'_> {
    fn drop(&mut self) {
        let mut inside = self.0.inside.lock();
        inside.count = inside.count.saturating_sub(1);
        if inside.count == 0 && inside.closed {
            self.0.empty.complete_all();
        }
    }
}
