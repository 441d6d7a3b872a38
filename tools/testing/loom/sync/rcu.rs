// SPDX-License-Identifier: GPL-2.0

//! Stand-in for RCU: a grace period waits for the present readers only.

use loom::sync::{Condvar, Mutex};
use std::collections::BTreeSet;

#[derive(Default)]
struct Readers {
    next: usize,
    present: BTreeSet<usize>,
}

struct Rcu {
    readers: Mutex<Readers>,
    left: Condvar,
}

loom::lazy_static! {
    static ref RCU: Rcu = Rcu {
        readers: Mutex::new(Readers::default()),
        left: Condvar::new(),
    };
}

/// A read-side critical section.
pub(crate) struct Guard(Option<usize>);

pub(crate) fn read_lock() -> Guard {
    let mut readers = RCU.readers.lock().unwrap();
    let number = readers.next;
    readers.next += 1;
    readers.present.insert(number);
    Guard(Some(number))
}

/// A critical section that no model waits for, so it adds no interleavings.
pub(crate) fn unobserved() -> Guard {
    Guard(None)
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(number) = self.0 else {
            return;
        };
        RCU.readers.lock().unwrap().present.remove(&number);
        RCU.left.notify_all();
    }
}

pub(crate) fn synchronize() {
    let mut readers = RCU.readers.lock().unwrap();
    let end = readers.next;
    while readers.present.range(..end).next().is_some() {
        readers = RCU.left.wait(readers).unwrap();
    }
}
