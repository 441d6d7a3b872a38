// SPDX-License-Identifier: GPL-2.0

//! Model checking of the concurrent primitives of `rust/sync` and of `SendBatch`, with `loom`.
//!
//! The sources are those of the modules. The names `core`, `kernel` and `rrdma` are this crate, so
//! the atomics and locks of the sources are those of `loom`. A model runs a test once for each
//! interleaving of its threads, and for each value that a load may return.
//!
//! # Bounds
//!
//! Each test has 2 or 3 threads. The number of preemptions is not limited, so a test is exhaustive
//! for its threads, but with two exceptions: `loom` has no load that returns the value of a later
//! store, and treats `SeqCst` accesses as `AcqRel`. No source relies on more than `AcqRel`.
//!
//! # What the tests assert
//!
//! The tests need no `unsafe`: data is an atomic with relaxed accesses. Such a load may return an
//! old value unless the store happened before, so each race of plain accesses shows as a wrong
//! value. A lost wake-up shows as a deadlock, which `loom` reports.
//!
//! Each claim is also tested with a [planted bug](planted::Bug), which the model must find.
#![cfg(test)]

// In the sources, these names have to lead here.
extern crate self as core;
extern crate self as kernel;
extern crate self as rrdma;

use queue::{params, stats};
use std::{cell, marker, mem, ops};

mod bindings;
mod planted;
mod prelude;
mod queue;
mod rdma;
mod sync;
mod task;
mod tests;
mod types;
