// SPDX-License-Identifier: GPL-2.0

//! Free slots of a queue, and capsules that wait for one.

use crate::rdma::Rdma;
use core::{
    iter,
    mem, //
};
use kernel::{
    alloc::kvec::PushError,
    prelude::*, //
};
use nvmet::{
    Capsule,
    Request,
    Sgl,
    COMMAND_SIZE, //
};
use rrdma::rdma::{
    qp::QpContext,
    rw::{
        RdmaRw,
        RwContext, //
    },
    wr::Operation, //
};

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

/// The transport's part of a command's request, for queue pairs with context `E`.
pub(crate) struct Slot<E: QpContext> {
    /// `None` while data is transferred, and if the queue pair keeps it because a transfer failed.
    pub(super) context: Option<RwContext<Sgl, E>>,
    /// The key that the response invalidates.
    pub(super) invalidate: Option<u32>,
    /// The next free slot.
    pub(super) next: Option<Request<Rdma>>,
}

impl<E: QpContext> Slot<E> {
    /// Takes the memory of an RDMA READ or WRITE back, and returns the data.
    #[inline(always)]
    pub(super) fn finish(&mut self, transferred: RdmaRw<Sgl, E>) -> Option<Sgl> {
        let finished = transferred.finish()?;
        put(&mut self.context, Some(finished.context));
        Some(finished.data)
    }

    /// Takes the memory of an RDMA READ or WRITE back that failed.
    #[cold]
    pub(super) fn give_up(&mut self, transferred: RdmaRw<Sgl, E>) {
        self.finish(transferred);
    }
}

/// Slots, which are requests `R`, and capsules of a queue.
pub(super) struct Slots<R: Link> {
    pub(super) phase: Phase,
    pub(super) free: FreeSlots<R>,
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
pub(super) fn put<T>(place: &mut Option<T>, value: Option<T>) {
    // There is nothing to drop, which the compiler cannot know.
    mem::forget(mem::replace(place, value));
}

/// Drops what is rarely there, out of the way of what is frequent.
#[cold]
#[inline(never)]
pub(super) fn discard<T>(_value: T) {}
