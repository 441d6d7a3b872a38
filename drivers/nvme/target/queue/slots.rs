// SPDX-License-Identifier: GPL-2.0

//! Free slots of a queue, and capsules that wait for one.

use core::mem;
use kernel::{
    alloc::kvec::PushError,
    prelude::*, //
};
use nvmet::{
    Capsule,
    Sgl,
    COMMAND_SIZE, //
};
use rrdma::rdma::wr::Operation;

/// A capsule that arrived.
pub(super) struct Arrived {
    pub(super) capsule: Operation<Capsule>,
    /// Bytes of data that the host sent behind the command.
    pub(super) data: u32,
}

/// A capsule that waits.
pub(super) enum Parked {
    /// A receive of the queue's own. It is not posted meanwhile, so that the host waits.
    Own(Arrived),
    /// A copy of a shared receive, which was posted again for other hosts.
    Copy(CapsuleCopy),
}

/// A copy of a capsule.
pub(super) struct CapsuleCopy {
    pub(super) command: [u8; COMMAND_SIZE],
    /// Bytes of data that the host sent behind the command.
    pub(super) behind: u32,
    /// The data of the command, if it was in the capsule and the command may have it.
    pub(super) data: Option<Sgl>,
}

/// Capsules that wait on a queue without a controller, at most: a Connect and one more. A host sends its first
/// command after the response to Connect.
pub(super) const MAX_PARKED_BEFORE_CONNECT: usize = 2;

/// Slots, which are requests `R`, and capsules of a queue.
pub(super) struct Slots<R> {
    pub(super) phase: Phase,
    pub(super) free: KVec<R>,
    /// Capsules that wait for the connection to be established, or for a slot.
    pub(super) parked: KVec<Parked>,
}

/// Whether commands may be started.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not before the connection is established.
    Waiting,
    Live,
    /// Not any more.
    Stopped,
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
    pub(super) fn next(&mut self) -> Option<(Parked, R)> {
        if self.phase != Phase::Live || self.parked.is_empty() {
            return None;
        }
        let request = self.free.pop()?;
        Some((self.parked.remove(0).ok()?, request))
    }

    /// Lets a capsule wait as the last of `most`, and returns one to start if a slot was freed meanwhile.
    ///
    /// # Errors
    ///
    /// Returns the capsule if too many wait.
    #[cold]
    pub(super) fn park(
        &mut self,
        parked: Parked,
        most: usize,
    ) -> Result<Option<(Parked, R)>, Parked> {
        if self.parked.len() >= most {
            return Err(parked);
        }
        match self.parked.push_within_capacity(parked) {
            Ok(()) => Ok(self.next()),
            Err(PushError(parked)) => Err(parked),
        }
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
