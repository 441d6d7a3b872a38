// SPDX-License-Identifier: GPL-2.0

//! Free slots of a queue, and parked capsules: those that wait for a slot, or for the connection to be
//! established.

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

/// A list of free slots, from which the one that was freed last is taken first.
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

/// A parked capsule, see [`Slots::parked`].
pub(super) enum Parked {
    /// A receive of the queue's own. It is not posted again while it is parked, so the host waits.
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

/// Maximum number of parked capsules of a queue without a controller: a Connect and one more. A host sends its
/// next command only after the response to Connect. That command is parked until the response has completed here.
pub(super) const MAX_PARKED_BEFORE_CONNECT: usize = 2;

/// The transport's part of a command's request, for queue pairs with context `E`.
pub(crate) struct Slot<E: QpContext> {
    /// `None` while data is transferred, and if the queue pair keeps it because a transfer failed.
    pub(super) context: Option<RwContext<Sgl, E>>,
    /// Whether a command in this slot may keep a shared receive while it is executed. So the number of such slots
    /// limits the shared receives that a queue keeps.
    pub(super) keeps_receive: bool,
    /// The key that the response invalidates.
    pub(super) invalidate: Option<u32>,
    /// The next free slot.
    pub(super) next: Option<Request<Rdma>>,
}

impl<E: QpContext> Slot<E> {
    /// Takes back the memory of an RDMA READ or WRITE, and returns the data. `None` if the queue pair keeps
    /// both, see [`RdmaRw::finish`].
    #[inline(always)]
    pub(super) fn finish(&mut self, transferred: RdmaRw<Sgl, E>) -> Option<Sgl> {
        let finished = transferred.finish()?;
        put(&mut self.context, Some(finished.context));
        Some(finished.data)
    }

    /// Takes back the memory of an RDMA READ or WRITE that failed, and drops the data.
    #[cold]
    pub(super) fn give_up(&mut self, transferred: RdmaRw<Sgl, E>) {
        self.finish(transferred);
    }
}

/// The free slots of a queue, which are requests `R`, and its parked capsules.
pub(super) struct Slots<R: Link> {
    pub(super) phase: Phase,
    pub(super) free: FreeSlots<R>,
    /// Capsules that wait for the connection to be established, or for a slot.
    pub(super) parked: KVec<Parked>,
}

/// Whether commands may be started.
///
/// A queue without a controller executes one command at a time. nvmet sets `sq->ctrl` before `sq->qid` when it
/// executes Connect, and would take another command of an I/O queue for an admin command in between.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// No: the connection is not yet established.
    Waiting,
    /// One: the queue has no controller, and executes no command.
    Unconnected,
    /// No: the queue had no controller when it began its only command.
    Connecting,
    /// Yes, at once: no capsule is parked.
    Live,
    /// Yes, when a slot is free, the parked capsules first.
    Parking,
    /// No: the connection is to end.
    Stopped,
    /// No: the connection has ended, and slots are dropped when they become free.
    Ended,
}

impl<R: Link> Slots<R> {
    /// Takes a slot for a capsule that arrives; `None` if it must be parked.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<R> {
        match self.phase {
            Phase::Live => self.free.pop(),
            _ => None,
        }
    }

    /// Returns the phase of a queue with a controller.
    pub(super) fn live(&self) -> Phase {
        match self.parked.is_empty() {
            true => Phase::Live,
            false => Phase::Parking,
        }
    }

    /// Takes out the first parked capsule, with a slot for it; `None` if there is no capsule or no slot, or if
    /// no command may start.
    #[cold]
    pub(super) fn next(&mut self) -> Option<(Parked, R)> {
        if self.parked.is_empty() {
            return None;
        }
        let connected = match self.phase {
            Phase::Unconnected => false,
            Phase::Live | Phase::Parking => true,
            _ => return None,
        };
        let request = self.free.pop()?;
        let parked = self.parked.remove(0).ok()?;
        self.phase = match connected {
            true => self.live(),
            false => Phase::Connecting,
        };
        Some((parked, request))
    }

    /// Parks a capsule, and returns the first parked one to start if a slot was freed meanwhile.
    ///
    /// # Errors
    ///
    /// Returns the capsule if `most` are parked.
    #[cold]
    pub(super) fn park(
        &mut self,
        parked: Parked,
        most: usize,
    ) -> Result<Option<(Parked, R)>, Parked> {
        if self.parked.len() >= most {
            return Err(parked);
        }
        if let Err(PushError(parked)) = self.parked.push_within_capacity(parked) {
            return Err(parked);
        }
        if self.phase == Phase::Live {
            self.phase = Phase::Parking;
        }
        Ok(self.next())
    }
}

/// Puts a value where there is none.
#[inline(always)]
pub(super) fn put<T>(place: &mut Option<T>, value: Option<T>) {
    // There is nothing to drop, which the compiler cannot know.
    mem::forget(mem::replace(place, value));
}

/// Drops a value that is rarely there. Not inlined, to keep its drop out of the hot path.
#[cold]
#[inline(never)]
pub(super) fn discard<T>(_value: T) {}
