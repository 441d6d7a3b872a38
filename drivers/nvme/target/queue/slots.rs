// SPDX-License-Identifier: GPL-2.0

//! Free slots of a queue, and capsules that wait for one.

use core::{
    iter,
    mem, //
};
use kernel::prelude::*;
use nvmet::Capsule;
use rrdma::rdma::wr::Operation;

/// A capsule that arrived.
pub(super) struct Arrived {
    pub(super) capsule: Operation<Capsule>,
    /// Bytes of data that the host sent behind the command.
    pub(super) data: u32,
}

/// A slot with room for the next one of a list.
pub(super) trait Link: Sized {
    /// Returns the place of the next slot, which is empty while the slot is in no list.
    fn next(&mut self) -> &mut Option<Self>;
}

/// Free slots, the last one that was freed first.
pub(super) struct FreeSlots<R: Link>(Option<R>);

impl<R: Link> FreeSlots<R> {
    pub(super) const EMPTY: Self = Self(None);

    #[inline(always)]
    pub(super) fn push(&mut self, mut slot: R) {
        put(slot.next(), self.0.take());
        put(&mut self.0, Some(slot));
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<R> {
        let mut slot = self.0.take()?;
        put(&mut self.0, slot.next().take());
        Some(slot)
    }
}

impl<R: Link> Drop for FreeSlots<R> {
    /// Drops the slots in a loop. The drop of the first one would recurse into all others, and overflow
    /// the stack.
    fn drop(&mut self) {
        iter::from_fn(|| self.pop()).for_each(drop);
    }
}

/// Slots, which are requests `R`, and capsules of a queue.
pub(super) struct Slots<R: Link> {
    pub(super) phase: Phase,
    pub(super) free: FreeSlots<R>,
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

impl<R: Link> Slots<R> {
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
pub(super) fn put<T>(place: &mut Option<T>, value: Option<T>) {
    // There is nothing to drop, which the compiler cannot know.
    mem::forget(mem::replace(place, value));
}

/// Drops what is rarely there, out of the way of what is frequent.
#[cold]
#[inline(never)]
pub(super) fn discard<T>(_value: T) {}
