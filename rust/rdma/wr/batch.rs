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
    hint::assert_unchecked,
    marker::PhantomData,
    mem::MaybeUninit,
    ptr::NonNull,
    slice, //
};
use kernel::{
    prelude::*,
    sync::rcu, //
};

/// Capacity of a [`Batch`].
#[derive(Clone, Copy)]
pub struct BatchCapacity {
    /// Number of work requests of all operations. The batch is full when it has so many.
    ///
    /// A [prepared](Chain::register_and_send) registration does not count.
    pub requests: usize,
    /// Number of memory pieces of all work requests.
    pub pieces: usize,
}

/// Serial number of no queue pair.
const NO_QUEUE: u64 = u64::MAX;

/// Operations that one call of `ib_post_send` posts as one list of work requests, so that the
/// device is notified once.
///
/// Creating a batch allocates all its memory. A batch is filled for one queue pair, and empty again
/// after it was posted. Dropping a batch drops the operations in it.
///
/// # Invariants
///
/// - The first `requests_used` of `requests` are initialised. Each signalled one is the last work
///   request of an operation, in order, and has the address of its slot as completion entry. The last
///   one is signalled.
/// - The batch owns the slots that the requests from `taken` on name. Nothing of these slots is posted,
///   and they complete on a queue pair with context `E`.
/// - While `refused` is false:
///   - `taken` is 0.
///   - The first `pieces_used` of `pieces` are initialised.
///   - `list` has the complete work requests of the operations, in order, for the queue pair with
///     serial number `queue`. They are in `requests`, or in the slots.
/// - While `refused` is true, `queue` is that of no queue pair.
pub struct Batch<E: QpContext, T: Complete<E>> {
    /// Number of requests whose operations the batch no longer owns.
    taken: usize,
    refused: bool,
    list: WrList,
    requests: KVec<MaybeUninit<Request>>,
    requests_used: usize,
    pieces: KVec<MaybeUninit<bindings::ib_sge>>,
    pieces_used: usize,
    queue: u64,
    _context: PhantomData<fn(&QueuePair<E>)>,
    _operations: PhantomData<Operation<T>>,
}

// SAFETY: The batch owns its slots. The work requests point into the slots, or to data that the
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
            taken: 0,
            refused: false,
            list: WrList::EMPTY,
            requests: places(capacity.requests)?,
            requests_used: 0,
            pieces: places(capacity.pieces)?,
            pieces_used: 0,
            queue: NO_QUEUE,
            _context: PhantomData,
            _operations: PhantomData,
        })
    }

    /// Returns the number of operations in the batch.
    pub fn len(&self) -> usize {
        let left = self.used().get(self.taken..).unwrap_or_default();
        let operations = left.iter().filter(|request| request.completes());
        operations.fold(0, |count: usize, _| count.saturating_add(1))
    }

    /// Returns whether the batch has no operations.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.requests_used <= self.taken
    }

    /// Returns whether the batch has no room for another work request.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.requests_used >= self.requests.len()
    }

    /// Returns the work requests in the memory of the batch.
    fn used(&self) -> &[Request] {
        // SAFETY: So many are initialised, by the type invariants.
        unsafe { slice::from_raw_parts(self.requests.as_ptr().cast(), self.requests_used) }
    }

    /// Returns the operations of a batch that is posted.
    fn entries(&self) -> Entries<'_> {
        Entries {
            requests: self.used(),
            last: self.list.last(),
        }
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
        // SAFETY: There is room for a request, as was checked above, or by `admit`.
        unsafe { assert_unchecked(self.requests_used < self.requests.len()) };
        // Before the operation is prepared, so that the compiler still knows that.
        // SAFETY: `refused` is false, so by the type invariants so many requests and pieces are
        // initialised.
        let wr_buffer = unsafe {
            WrBuffer {
                list: self.list,
                requests: FixedVec::new(&mut self.requests, self.requests_used),
                pieces: FixedVec::new(&mut self.pieces, self.pieces_used),
            }
        };
        let slot = operation.into_sent::<E>();
        // SAFETY: This function owns the slot. Neither the slot nor the memory of the work requests
        // moves until they are posted or undone.
        let (wr_buffer, built) = unsafe { queue.build(slot, wr_buffer, build) };
        let list = wr_buffer.list;
        let (requests, pieces) = (wr_buffer.requests.len(), wr_buffer.pieces.len());
        match built {
            Ok(()) => {
                // INVARIANT: The work requests of the operation are complete, and follow those before.
                // `Chain` signals the last one only, with the address of the slot.
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
        if self.requests_used == 0 {
            // INVARIANT: There are no operations, and operations can be posted.
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
                self.clear();
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
        match unsafe { queue.stop_at(first, length, failure, self.entries()) } {
            Ok(()) => {
                self.forget();
                Ok(())
            }
            Err((error, posted)) => self.refuse(error, posted),
        }
    }

    /// Keeps the operations that were not posted, after the first `posted` work requests were. The caller
    /// is in the critical section in which they were.
    fn refuse(&mut self, error: Error, posted: u32) -> Result {
        // INVARIANT: Operations before `taken` belong to the device, or are partially posted.
        let (first, length) = (self.list.first(), self.list.len());
        (self.taken, _) = self.entries().posted(first, length, posted);
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
        self.taken = 0;
        self.refused = false;
        self.clear();
    }

    /// Empties the batch, whose operations all belong to the device.
    #[inline(always)]
    fn clear(&mut self) {
        // INVARIANT: The batch is empty.
        self.list.replace_by(WrList::EMPTY);
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
        let mut index = self.taken;
        let slot = loop {
            let Some(request) = self.used().get(index) else {
                self.forget();
                return None;
            };
            index = index.saturating_add(1);
            if request.completes() {
                break request.cqe().cast::<Slot<T>>();
            }
        };
        // INVARIANT: The batch no longer owns the slot.
        self.taken = index;
        // SAFETY: By the type invariants the batch owned the slot, and nothing of the slot is posted.
        Some(unsafe { Operation::from_posted(slot) })
    }
}

/// The operations of a batch that is posted.
///
/// # Invariants
///
/// `requests` are those of a [`Batch`] that are in use. `last` is the last one.
#[derive(Clone, Copy)]
struct Entries<'a> {
    requests: &'a [Request],
    last: *mut bindings::ib_send_wr,
}

/// An operation of a batch.
struct BatchEntry {
    slot: NonNull<CqeNode>,
    first: *mut bindings::ib_send_wr,
    last: *const bindings::ib_send_wr,
}

impl BatchEntry {
    /// Returns the number of its work requests.
    ///
    /// # Safety
    ///
    /// The operation must not have completed.
    unsafe fn length(&self) -> u32 {
        // SAFETY: By the safety requirements, the operation owns its work requests, which end with `last`.
        unsafe { wr_buffer::count(self.first, self.last) }
    }
}

impl<'a> Entries<'a> {
    /// Splits off the last operation. `first` is the first work request of all. Reads none of an operation
    /// but the last one, which is in the batch.
    #[cold]
    #[inline(never)]
    fn split_last(self, first: *mut bindings::ib_send_wr) -> Option<(BatchEntry, Self)> {
        let (last, others) = self.requests.split_last()?;
        let mut before = others;
        while let Some((request, rest)) = before.split_last() {
            if request.completes() {
                break;
            }
            before = rest;
        }
        // The last work request of an operation links to the next operation.
        let first = before.last().map_or(first, |last| last.wr().next);
        let entry = BatchEntry {
            slot: last.cqe().cast(),
            first,
            last: last.wr(),
        };
        let before = Self {
            requests: before,
            last: self.last,
        };
        Some((entry, before))
    }

    /// Returns the number of requests whose operations are posted at least in part, if `posted` of `length`
    /// work requests are. Also returns the operation that is posted in part, if any. The caller is in the
    /// critical section in which they were posted, so that operation has not completed.
    #[cold]
    #[inline(never)]
    fn posted(
        mut self,
        first: *mut bindings::ib_send_wr,
        length: u32,
        posted: u32,
    ) -> (usize, Option<NonNull<CqeNode>>) {
        let mut left = length.saturating_sub(posted);
        while left != 0 {
            let requests = self.requests.len();
            let Some((entry, before)) = self.split_last(first) else {
                break;
            };
            // SAFETY: Its last work request is not posted.
            let Some(others) = left.checked_sub(unsafe { entry.length() }) else {
                return (requests, Some(entry.slot));
            };
            (self, left) = (before, others);
        }
        (self.requests.len(), None)
    }
}

impl PostedOperations for Entries<'_> {
    // Begins with the last operation, and so reads no work request of an operation that was posted
    // whole: that may have completed, and its region may be gone.
    fn position(
        self,
        first: *mut bindings::ib_send_wr,
        length: u32,
        bad: *const bindings::ib_send_wr,
    ) -> Option<u32> {
        let mut entries = self;
        let mut end = length;
        while let Some((entry, before)) = entries.split_last(first) {
            // SAFETY: Nothing before `bad` in an operation completes that, and the operations behind that
            // of `bad` are not posted. So the operation owns its work requests.
            let (count, found) = unsafe {
                let count = entry.length();
                (count, wr_buffer::position(entry.first, count, bad))
            };
            end = end.saturating_sub(count);
            if let Some(found) = found {
                return Some(end.saturating_add(found));
            }
            entries = before;
        }
        None
    }

    fn last(&self, _first: *mut bindings::ib_send_wr, _length: u32) -> *mut bindings::ib_send_wr {
        self.last
    }

    fn split(
        self,
        first: *mut bindings::ib_send_wr,
        length: u32,
        posted: u32,
    ) -> Option<NonNull<CqeNode>> {
        self.posted(first, length, posted).1
    }
}

impl<E: QpContext, T: Complete<E>> Drop for Batch<E, T> {
    fn drop(&mut self) {
        while self.take_back().is_some() {}
    }
}
