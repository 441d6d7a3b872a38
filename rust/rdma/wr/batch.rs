// SPDX-License-Identifier: GPL-2.0

//! Operations that are posted by one call.

use super::{
    operation::Slot,
    post::{
        PostFailure,
        PostedOperations, //
    },
    request::Request,
    wr_buffer::{
        self,
        FixedVec,
        WrBuffer,
        WrList, //
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

/// Capacity of a [`Batch`].
#[derive(Clone, Copy)]
pub struct BatchCapacity {
    /// Number of operations.
    pub operations: usize,
    /// Number of work requests of all operations.
    pub requests: usize,
    /// Number of memory pieces of all work requests.
    pub pieces: usize,
}

/// Serial number of no queue pair.
const NO_QUEUE: u64 = u64::MAX;

/// An operation in a batch.
struct BatchEntry<T> {
    slot: NonNull<Slot<T>>,
    /// End of its work requests in `Batch::list` (exclusive).
    end: u32,
    /// Its last work request, which is one of `Batch::requests`, and links to the next entry.
    last: *mut bindings::ib_send_wr,
}

/// Operations that one call of `ib_post_send` posts as one list of work requests, so that the
/// device is notified once.
///
/// Creating a batch allocates all its memory. A batch is filled for one queue pair, and empty again
/// after it was posted. Dropping a batch drops the operations in it.
///
/// # Invariants
///
/// - The entries from `taken` on own their slots. Nothing of these slots is posted, and they
///   complete on a queue pair with context `E`.
/// - While `refused` is false:
///   - `taken` is 0.
///   - The first `requests_used` of `requests` and `pieces_used` of `pieces` are initialised.
///   - `list` has the complete work requests of the entries, in order, for the queue pair with
///     serial number `queue`. They are in `requests`, or in the slots.
/// - While `refused` is true, `queue` is that of no queue pair.
pub struct Batch<E: QpContext, T: Complete<E>> {
    entries: KVec<BatchEntry<T>>,
    taken: usize,
    refused: bool,
    list: WrList,
    requests: KVec<MaybeUninit<Request>>,
    requests_used: usize,
    pieces: KVec<MaybeUninit<bindings::ib_sge>>,
    pieces_used: usize,
    queue: u64,
    _context: PhantomData<fn(&QueuePair<E>)>,
}

// SAFETY: The batch owns its entries. The work requests point into the entries, or to data that the
// closure of `push` added, which is `Send`.
unsafe impl<E: QpContext, T: Complete<E>> Send for Batch<E, T> {}

fn places<T>(count: usize) -> Result<KVec<MaybeUninit<T>>> {
    let mut places = KVec::with_capacity(count, GFP_KERNEL)?;
    // SAFETY: The capacity is at least `count`, and the elements need no initialisation.
    unsafe { places.inc_len(count) };
    Ok(places)
}

impl<E: QpContext, T: Complete<E>> Batch<E, T> {
    /// Creates an empty batch. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(capacity: BatchCapacity) -> Result<Self> {
        // INVARIANT: The batch is empty.
        Ok(Self {
            entries: KVec::with_capacity(capacity.operations, GFP_KERNEL)?,
            taken: 0,
            refused: false,
            list: WrList::EMPTY,
            requests: places(capacity.requests)?,
            requests_used: 0,
            pieces: places(capacity.pieces)?,
            pieces_used: 0,
            queue: NO_QUEUE,
            _context: PhantomData,
        })
    }

    /// Returns the number of operations in the batch.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len().saturating_sub(self.taken)
    }

    /// Returns whether the batch has no operations.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the batch has no room for another operation.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.entries.capacity()
    }

    /// Adds `operation` with the work requests that `build` creates, for `queue`. Any context.
    ///
    /// `build` must be [`Send`], because another thread may post the batch, with the data that
    /// `build` added.
    ///
    /// # Errors
    ///
    /// Returns the operation with the error:
    ///
    /// - `ENOBUFS`: the batch is full. Post it first.
    /// - `EBUSY`: operations that could not be posted must be [taken back](Batch::take_back) first.
    /// - `EINVAL`: the batch has operations for another queue pair, or `build` created no work
    ///   request.
    /// - Any error of `build`.
    #[inline(always)]
    pub fn push(
        &mut self,
        queue: &QueuePair<E>,
        operation: Operation<T>,
        build: impl for<'a> FnOnce(&'a T, &mut Chain<'a, '_, E>) -> Result + Send,
    ) -> Result<(), Unposted<T>> {
        // In the common case, the batch is for this queue pair and has room.
        if self.queue != queue.serial() || self.is_full() {
            if let Err(error) = self.admit(queue) {
                return Err(Unposted { error, operation });
            }
        }
        let slot = operation.into_sent::<E>();
        // SAFETY: `refused` is false, so by the type invariants so many requests and pieces are
        // initialised.
        let wr_buffer = unsafe {
            WrBuffer {
                list: self.list,
                requests: FixedVec::new(&mut self.requests, self.requests_used),
                pieces: FixedVec::new(&mut self.pieces, self.pieces_used),
            }
        };
        // SAFETY: This function owns the slot. Neither the slot nor the memory of the work requests
        // moves until they are posted or undone.
        let (wr_buffer, built) = unsafe { queue.build(slot, wr_buffer, build) };
        let list = wr_buffer.list;
        let (requests, pieces) = (wr_buffer.requests.len(), wr_buffer.pieces.len());
        let entry = BatchEntry {
            slot,
            end: list.len(),
            last: list.last(),
        };
        match built {
            Ok(()) => {
                let count = self.entries.len();
                // SAFETY: It was checked above that there is room for another entry.
                unsafe {
                    self.entries.as_mut_ptr().add(count).write(entry);
                    self.entries.inc_len(1);
                }
                // INVARIANT: The work requests of the new entry are complete, and follow those
                // before.
                self.list.replace_by(list);
                self.requests_used = requests;
                self.pieces_used = pieces;
                Ok(())
            }
            Err(error) => Err(Unposted {
                error,
                // SAFETY: This function owns the slot, and nothing of it is posted.
                operation: unsafe { Operation::from_posted(slot) },
            }),
        }
    }

    /// Prepares the batch for another operation, on a queue pair that may be another one than before.
    #[cold]
    #[inline(never)]
    fn admit(&mut self, queue: &QueuePair<E>) -> Result {
        if self.refused {
            return Err(EBUSY);
        }
        if self.entries.is_empty() {
            // INVARIANT: There are no entries, and operations can be posted.
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

    /// Posts all operations in the batch. Any context.
    ///
    /// # Errors
    ///
    /// On an error of [`QueuePair::post_send`], the operations before the failed one are posted.
    /// The failed one and those behind it stay in the batch, and must be [taken
    /// back](Batch::take_back).
    ///
    /// Other errors leave the batch as it is:
    ///
    /// - `EBUSY`: operations that could not be posted must be taken back first.
    /// - `EINVAL`: the batch was filled for another queue pair.
    #[inline]
    pub fn post(&mut self, queue: &QueuePair<E>) -> Result {
        self.post_within(&rcu::read_lock(), queue)
    }

    /// Posts all operations in the batch as [`post`](Self::post) does, for callers that are already in an
    /// RCU read-side critical section.
    ///
    /// # Errors
    ///
    /// Those of [`post`](Self::post).
    #[inline(always)]
    pub fn post_within(&mut self, grace: &rcu::Guard, queue: &QueuePair<E>) -> Result {
        if self.is_empty() {
            return Ok(());
        }
        // While operations must be taken back, this is not the queue pair of the batch either.
        if self.queue != queue.serial() {
            return Err(match self.refused {
                true => EBUSY,
                false => EINVAL,
            });
        }
        // SAFETY: The batch is not empty, so `refused` is false, and the work requests are complete, by
        // the type invariants. The memory that they name belongs to the slots; slots of posted work
        // requests are given up below. The last work request of each slot is in `requests`, so it does
        // not change when the slot completes.
        match unsafe { queue.try_post(grace, self.list) } {
            Ok(()) => {
                self.forget();
                Ok(())
            }
            // SAFETY: The list was posted above.
            Err(failure) => unsafe { self.failed(grace, queue, failure) },
        }
    }

    /// Handles a failure to post the batch.
    ///
    /// # Safety
    ///
    /// `failure` must be that of posting the list of the batch to `queue`, within the critical section of
    /// `_grace`.
    // Apart, so that the common path keeps nothing for it.
    #[cold]
    #[inline(never)]
    unsafe fn failed(
        &mut self,
        _grace: &rcu::Guard,
        queue: &QueuePair<E>,
        failure: PostFailure,
    ) -> Result {
        let (first, length) = (self.list.first(), self.list.len());
        // SAFETY: By the safety requirements, and as in `post_within`.
        match unsafe { queue.stop_at(first, length, failure, Entries(&self.entries)) } {
            Ok(()) => {
                self.forget();
                Ok(())
            }
            Err((error, posted)) => self.refuse(error, posted),
        }
    }

    /// Keeps the operations that were not posted, after the first `posted` work requests were.
    fn refuse(&mut self, error: Error, posted: u32) -> Result {
        let begun = self.entries.iter().position(|entry| posted < entry.end);
        let begun = begun.unwrap_or(self.entries.len());
        let split = usize::from(split(&self.entries, posted).is_some());
        // INVARIANT: Entries before `taken` belong to the device, or are partially posted.
        self.taken = begun.saturating_add(split);
        self.set_refused();
        if self.is_empty() {
            // The last operation is partially posted, so none can be taken back.
            self.forget();
            return Ok(());
        }
        Err(error)
    }

    fn set_refused(&mut self) {
        // INVARIANT: Both are set together.
        self.refused = true;
        self.queue = NO_QUEUE;
    }

    /// Empties the batch without dropping its operations, which belong to the device.
    #[inline]
    fn forget(&mut self) {
        // INVARIANT: The batch is empty. `BatchEntry` has no destructor.
        self.entries.clear();
        self.taken = 0;
        self.refused = false;
        self.list = WrList::EMPTY;
        self.requests_used = 0;
        self.pieces_used = 0;
    }

    /// Takes the first operation out of the batch. Returns `None` if there is none. Any context.
    ///
    /// After a failed [`post`](Batch::post), call it until it returns `None`; each call returns an
    /// operation that was not posted. It may also be called to abandon a batch. The batch can be
    /// filled again when all operations have been taken.
    pub fn take_back(&mut self) -> Option<Operation<T>> {
        if !self.refused {
            self.list.undo(0);
            self.set_refused();
        }
        let Some(entry) = self.entries.get(self.taken) else {
            self.forget();
            return None;
        };
        // SAFETY: By the type invariants the entry owns its slot, and nothing of the slot is
        // posted. The increment of `taken` below ends the ownership.
        let operation = unsafe { Operation::from_posted(entry.slot) };
        // INVARIANT: The entry before the new `taken` no longer owns its slot.
        self.taken = self.taken.saturating_add(1);
        Some(operation)
    }
}

/// The entries of a batch that is posted.
struct Entries<'a, T>(&'a [BatchEntry<T>]);

impl<T> PostedOperations for Entries<'_, T> {
    // Begins with the last operation, and so reads no work request of an operation that was posted
    // whole: that may have completed, and its region may be gone.
    fn position(
        &self,
        first: *mut bindings::ib_send_wr,
        _length: u32,
        bad: *const bindings::ib_send_wr,
    ) -> Option<u32> {
        let mut entries = self.0;
        while let Some((entry, before)) = entries.split_last() {
            let (start, first) = match before.last() {
                // SAFETY: By the invariants of the batch, the last work request of an entry is in the
                // batch, which owns it. It links to the next entry.
                Some(before) => (before.end, unsafe { (*before.last).next }),
                None => (0, first),
            };
            let length = entry.end.wrapping_sub(start);
            // SAFETY: Nothing before `bad` in an entry completes the operation, and the entries behind
            // that of `bad` are not posted. So the operation owns its work requests.
            if let Some(found) = unsafe { wr_buffer::position(first, length, bad) } {
                return Some(start.saturating_add(found));
            }
            entries = before;
        }
        None
    }

    fn last(&self, first: *mut bindings::ib_send_wr, _length: u32) -> *mut bindings::ib_send_wr {
        self.0.last().map_or(first, |entry| entry.last)
    }

    fn split(&self, posted: u32) -> Option<NonNull<CqeNode>> {
        split(self.0, posted)
    }
}

/// Returns the operation of work request number `posted`, if an earlier work request belongs to the
/// same operation.
fn split<T>(entries: &[BatchEntry<T>], posted: u32) -> Option<NonNull<CqeNode>> {
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
