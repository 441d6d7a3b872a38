// SPDX-License-Identifier: GPL-2.0

//! Stand-in for completions.

use crate::{
    planted::{has, Bug},
    prelude::{value, PinInit},
};
use loom::sync::{Condvar, Mutex};

/// A completion as in C: a flag under a lock, and a wait queue.
pub(crate) struct TimedCompletion {
    done: Mutex<bool>,
    waiters: Condvar,
}

impl TimedCompletion {
    pub(crate) fn new() -> impl PinInit<Self> {
        value(Self {
            done: Mutex::new(false),
            waiters: Condvar::new(),
        })
    }

    pub(crate) fn complete_all(&self) {
        let mut done = self.done.lock().unwrap();
        *done = !has(Bug::ForgetfulCompletion);
        self.waiters.notify_all();
    }

    pub(crate) fn wait_or(&self, _: impl FnOnce()) {
        self.wait();
    }

    pub(crate) fn wait(&self) {
        if has(Bug::NoWait) {
            return;
        }
        let mut done = self.done.lock().unwrap();
        if has(Bug::ForgetfulCompletion) {
            drop(self.waiters.wait(done).unwrap());
            return;
        }
        while !*done {
            done = self.waiters.wait(done).unwrap();
        }
    }
}
