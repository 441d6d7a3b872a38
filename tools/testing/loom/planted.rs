// SPDX-License-Identifier: GPL-2.0

//! Models, and bugs that a model must find.

use crate::types;
use std::{cell::Cell, sync::atomic::Ordering};

/// A bug in what the primitives are made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    None,
    /// No access acquires.
    NoAcquire,
    /// No access releases.
    NoRelease,
    /// A compare-and-exchange or swap is a load and a store.
    SplitExchange,
    /// `synchronize_rcu()` does not wait.
    NoGracePeriod,
    /// `complete_all()` only wakes the present waiters.
    ForgetfulCompletion,
    /// A wait for a completion returns at once.
    NoWait,
}

// The threads of a model are coroutines of one thread.
thread_local! {
    static PLANTED: Cell<Bug> = const { Cell::new(Bug::None) };
}

/// Returns whether a bug is planted.
pub(crate) fn has(bug: Bug) -> bool {
    PLANTED.get() == bug
}

/// Returns the order of an access without the part that the planted bug removes.
pub(crate) fn weaken(order: Ordering) -> Ordering {
    match (PLANTED.get(), order) {
        (Bug::NoAcquire, Ordering::Acquire) | (Bug::NoRelease, Ordering::Release) => {
            Ordering::Relaxed
        }
        (Bug::NoAcquire, Ordering::AcqRel | Ordering::SeqCst) => Ordering::Release,
        (Bug::NoRelease, Ordering::AcqRel | Ordering::SeqCst) => Ordering::Acquire,
        (_, order) => order,
    }
}

/// Runs a test in all interleavings.
pub(crate) fn model(test: fn()) {
    with(Bug::None, test);
}

/// Runs a test in all interleavings, with a planted bug. Panics when the model finds it.
pub(crate) fn with(bug: Bug, test: fn()) {
    PLANTED.set(bug);
    loom::model(move || {
        types::forget_objects();
        test();
        assert!(types::no_object_left(), "leaked an object");
    });
}
