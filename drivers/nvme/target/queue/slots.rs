// SPDX-License-Identifier: GPL-2.0

//! Free slots of a queue, and capsules that wait for one.

use core::mem;
use kernel::prelude::*;
use nvmet::Capsule;
use rrdma::rdma::wr::Operation;

/// A capsule that arrived.
pub(super) struct Arrived {
    pub(super) capsule: Operation<Capsule>,
    /// Bytes of data that the host sent behind the command.
    pub(super) data: u32,
}

/// Slots, which are requests `R`, and capsules of a queue.
pub(super) struct Slots<R> {
    pub(super) phase: Phase,
    pub(super) free: KVec<R>,
    /// Capsules that wait for the connection to be established, or for a slot.
    pub(super) parked: KVec<Arrived>,
}

/// Whether commands may be started.
#[derive(PartialEq, Eq)]
pub(super) enum Phase {
    /// Not yet, or not any more.
    Waiting,
    Live,
    /// Never again: slots are freed.
    Ended,
}

impl<R> Slots<R> {
    /// Returns a slot for a capsule that arrives.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<R> {
        match self.phase == Phase::Live && self.parked.is_empty() {
            true => self.free.pop(),
            false => None,
        }
    }

    /// Returns a parked capsule to start, and its slot.
    #[cold]
    pub(super) fn next(&mut self) -> Option<(Arrived, R)> {
        if self.phase != Phase::Live || self.parked.is_empty() {
            return None;
        }
        let request = self.free.pop()?;
        Some((self.parked.remove(0).ok()?, request))
    }
}

/// Puts a value where there is none.
#[inline(always)]
pub(super) fn put<T>(place: &mut Option<T>, value: T) {
    // There is nothing to drop, which the compiler cannot know.
    mem::forget(place.replace(value));
}

/// Drops what is rarely there, out of the way of what is frequent.
#[cold]
#[inline(never)]
pub(super) fn discard<T>(_value: T) {}
