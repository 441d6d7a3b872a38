// SPDX-License-Identifier: GPL-2.0

//! Operations that are posted together.

use super::{
    operation::Slot,
    request::Request,
    wr_buffer::{
        FixedVec,
        WrBuffer, //
    },
    Chain,
    Complete,
    Operation,
    Unposted, //
};
use crate::{
    bindings,
    errno::ENOBUFS,
    rdma::qp::{
        CqeNode,
        QpContext,
        QueuePair, //
    },
};
use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::rcu, //
};

/// How much a [`Batch`] has room for.
#[derive(Clone, Copy)]
pub struct BatchCapacity {
    /// Operations.
    pub operations: usize,
    /// Requests of all of them.
    pub requests: usize,
    /// Pieces of memory that all the requests name.
    pub pieces: usize,
}

/// An operation of a batch.
struct BatchEntry<T> {
    slot: NonNull<Slot<T>>,
    /// Behind the last one of its requests.
    end: usize,
}

/// Operations that one call posts (`ib_post_send` of a chain of all their requests),
/// so that the device is notified once.
///
/// All memory is allocated when the batch is created. What it is filled with is for
/// one queue pair; once posted, it is empty again. Dropping it drops what is in it.
///
/// # Invariants
///
/// - `entries` from `taken` on own their slots, of which nothing is posted, and which
///   are to complete on a queue pair of context `E`.
/// - Unless `refused`: `taken` is 0, the first `requests_used` of `requests` and
///   `pieces_used` of `pieces` are initialised, and the requests are those of the
///   entries, in order, complete, for the queue pair of number `queue`.
pub struct Batch<E: QpContext, T: Complete<E>> {
    entries: KVec<BatchEntry<T>>,
    taken: usize,
    refused: bool,
    requests: KVec<MaybeUninit<Request>>,
    requests_used: usize,
    pieces: KVec<MaybeUninit<bindings::ib_sge>>,
    pieces_used: usize,
    queue: u64,
    _context: PhantomData<fn(&QueuePair<E>)>,
}

// SAFETY: The entries are owned. What the requests point to is theirs, or was given to them in
// `push` by what may be sent to another thread as well.
unsafe impl<E: QpContext, T: Complete<E>> Send for Batch<E, T> {}

fn places<T>(count: usize) -> Result<KVec<MaybeUninit<T>>> {
    let mut places = KVec::with_capacity(count, GFP_KERNEL)?;
    for _ in 0..count {
        places.push(MaybeUninit::uninit(), GFP_KERNEL)?;
    }
    Ok(places)
}

impl<E: QpContext, T: Complete<E>> Batch<E, T> {
    /// Allocates a batch. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(capacity: BatchCapacity) -> Result<Self> {
        // INVARIANT: Empty.
        Ok(Self {
            entries: KVec::with_capacity(capacity.operations, GFP_KERNEL)?,
            taken: 0,
            refused: false,
            requests: places(capacity.requests)?,
            requests_used: 0,
            pieces: places(capacity.pieces)?,
            pieces_used: 0,
            queue: 0,
            _context: PhantomData,
        })
    }

    /// Operations in the batch.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len().saturating_sub(self.taken)
    }

    /// Whether there is no operation in the batch.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is room for no more operations.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.entries.len() == self.entries.capacity()
    }

    /// Adds the requests that `build` makes of `operation`, for `queue`. Any context.
    ///
    /// The batch may be posted by another thread, and with it what `build` adds of its own: so
    /// that is to be [`Send`].
    ///
    /// # Errors
    ///
    /// Gives the operation back: `ENOBUFS` if there is no room left, so that the batch
    /// has to be posted first; `EBUSY` if what could not be posted was not
    /// [taken back](Batch::take_back); `EINVAL` if what is in the batch is for another
    /// queue pair, or for no request at all; what the chain refused.
    #[inline]
    pub fn push(
        &mut self,
        queue: &QueuePair<E>,
        operation: Operation<T>,
        build: impl for<'a> FnOnce(&'a T, &mut Chain<'a, '_, E>) -> Result + Send,
    ) -> Result<(), Unposted<T>> {
        if let Err(error) = self.admit(queue) {
            return Err(Unposted { error, operation });
        }
        let slot = operation.into_sent::<E>();
        // SAFETY: By the type invariants, as `refused` is not set.
        let wr_buffer = unsafe {
            WrBuffer {
                requests: FixedVec::new(&mut self.requests, self.requests_used),
                pieces: FixedVec::new(&mut self.pieces, self.pieces_used),
            }
        };
        // SAFETY: The slot is ours. The room stays as it is, as does the slot, until
        // posted or undone.
        let (wr_buffer, built) = unsafe { queue.build(slot, wr_buffer, build) };
        let (requests, pieces) = (wr_buffer.requests.len(), wr_buffer.pieces.len());
        let entry = BatchEntry {
            slot,
            end: requests,
        };
        let result = built.and_then(|()| {
            // There is room, see `admit`.
            self.entries
                .push_within_capacity(entry)
                .map_err(|_| ENOBUFS)
        });
        match result {
            Ok(()) => {
                // INVARIANT: The requests of the new entry are there, complete.
                self.requests_used = requests;
                self.pieces_used = pieces;
                Ok(())
            }
            Err(error) => Err(Unposted {
                error,
                // SAFETY: The slot is ours, and nothing of it posted.
                operation: unsafe { Operation::from_posted(slot) },
            }),
        }
    }

    fn admit(&mut self, queue: &QueuePair<E>) -> Result {
        if self.refused {
            return Err(EBUSY);
        }
        if self.entries.is_empty() {
            self.queue = queue.serial();
        }
        if self.queue != queue.serial() {
            return Err(EINVAL);
        }
        if self.is_full() {
            return Err(ENOBUFS);
        }
        Ok(())
    }

    /// Posts what is in the batch. Any context.
    ///
    /// # Errors
    ///
    /// Says why the first operation that was not posted was not, as
    /// [`QueuePair::post_send`] does, and leaves that one and those behind it, to be
    /// [taken back](Batch::take_back); those ahead of it are posted. `EBUSY` if earlier
    /// ones were not taken back, `EINVAL` for another queue pair than they are for.
    #[inline]
    pub fn post(&mut self, queue: &QueuePair<E>) -> Result {
        if self.is_empty() {
            return Ok(());
        }
        if self.refused {
            return Err(EBUSY);
        }
        if self.queue != queue.serial() {
            return Err(EINVAL);
        }
        let entries = &self.entries;
        // SAFETY: By the type invariants.
        let mut requests = unsafe { FixedVec::new(&mut self.requests, self.requests_used) };
        // SAFETY: The requests are complete, by the type invariants. What they name is
        // in the slots, which are given up below if they are posted.
        let posted = unsafe {
            queue.post_requests(&rcu::read_lock(), requests.from(0), |n| split(entries, n))
        };
        match posted {
            Ok(()) => {
                self.forget();
                Ok(())
            }
            Err((error, posted)) => self.refuse(error, posted),
        }
    }

    /// Keeps the operations of which none of the first `posted` requests is.
    fn refuse(&mut self, error: Error, posted: usize) -> Result {
        let begun = self.entries.iter().position(|entry| posted < entry.end);
        let begun = begun.unwrap_or(self.entries.len());
        let split = usize::from(split(&self.entries, posted).is_some());
        // INVARIANT: Those ahead of `taken` belong to the device, or are partially posted.
        self.taken = begun.saturating_add(split);
        self.refused = true;
        if self.is_empty() {
            // A partially posted one is all there is.
            self.forget();
            return Ok(());
        }
        Err(error)
    }

    /// Empties the batch of what is the device's.
    #[inline]
    fn forget(&mut self) {
        // INVARIANT: Empty. Members have no destructor.
        self.entries.clear();
        self.taken = 0;
        self.refused = false;
        self.requests_used = 0;
        self.pieces_used = 0;
    }

    /// Takes the first operation out of the batch: after a failure to post, one after
    /// the other of those that were not; otherwise, what was not meant to be posted
    /// after all, and then all have to be taken before the batch is filled again. Any
    /// context.
    pub fn take_back(&mut self) -> Option<Operation<T>> {
        if !self.refused {
            // SAFETY: By the type invariants.
            let mut requests = unsafe { FixedVec::new(&mut self.requests, self.requests_used) };
            super::wr_buffer::undo(requests.from(0));
            self.refused = true;
        }
        let Some(entry) = self.entries.get(self.taken) else {
            self.forget();
            return None;
        };
        // SAFETY: By the type invariants; it is one of them no longer.
        let operation = unsafe { Operation::from_posted(entry.slot) };
        // INVARIANT: As above.
        self.taken = self.taken.saturating_add(1);
        Some(operation)
    }
}

/// The operation that request `posted` is of, if one before it is of it, too.
fn split<T>(entries: &[BatchEntry<T>], posted: usize) -> Option<NonNull<CqeNode>> {
    let mut start = 0;
    for entry in entries {
        if posted < entry.end {
            return (start < posted).then_some(entry.slot.cast());
        }
        start = entry.end;
    }
    None
}

impl<E: QpContext, T: Complete<E>> Drop for Batch<E, T> {
    fn drop(&mut self) {
        while self.take_back().is_some() {}
    }
}
