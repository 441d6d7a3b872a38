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
pub(crate) struct RcuSection(Option<usize>);

pub(crate) fn read_lock() -> RcuSection {
    let mut readers = RCU.readers.lock().unwrap();
    let number = readers.next;
    readers.next += 1;
    readers.present.insert(number);
    RcuSection(Some(number))
}

/// A critical section that no model waits for, so it adds no interleavings.
pub(crate) fn unobserved() -> RcuSection {
    RcuSection(None)
}

impl Drop for RcuSection {
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
