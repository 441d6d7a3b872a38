// SPDX-License-Identifier: GPL-2.0

//! Stand-in for spinlocks.

use crate::prelude::{value, PinInit};
use loom::sync::{Mutex, MutexGuard};

/// A spinlock. To the model, a waiter that spins is one that sleeps.
pub(crate) struct IrqLock<T>(Mutex<T>);

impl<T> IrqLock<T> {
    pub(crate) fn new(value_inside: T) -> impl PinInit<Self> {
        value(Self(Mutex::new(value_inside)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }
}

/// Creates the initialiser of a lock.
#[macro_export]
macro_rules! new_irq_lock {
    ($inside:expr, $name:literal) => {
        $crate::sync::IrqLock::new($inside)
    };
}
