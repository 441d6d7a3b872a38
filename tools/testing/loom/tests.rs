// SPDX-License-Identifier: GPL-2.0

//! Tests of the claims, each in a model.

mod claim;
mod rcu_slot;
mod relaxed_bool;
mod rundown;

use crate::sync::atomic::{AtomicU32, Ordering};

/// Data that the primitives protect. A race of its accesses shows as a wrong value.
pub(crate) struct Data(AtomicU32);

impl Data {
    pub(crate) fn new(value: u32) -> Self {
        let data = Self(AtomicU32::new(0));
        data.set(value);
        data
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds one. Concurrent additions are lost.
    pub(crate) fn bump(&self) {
        self.set(self.get() + 1);
    }
}
