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
    sync::{RcuReadLock, RcuSection},
};
use core::{
    hint::assert_unchecked,
    marker::PhantomData,
    mem::MaybeUninit,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};
use kernel::prelude::*;

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
        let operations = left.iter().filter(|request| request.completes().is_some());
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

    /// Returns the operations of a batch that could not be posted whole. They may be used until the next
    /// call of another function.
    fn entries(&self) -> Entries {
        // INVARIANT: So many are in use, by the type invariants, and nothing else writes to them.
        Entries {
            requests: self.requests.as_ptr().cast(),
            count: self.requests_used,
            first: self.list.first(),
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
        build: impl for<'a> FnOnce(&'a mut T, &mut Chain<'a, '_, E>) -> Result + Send,
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
        self.post_within(&RcuReadLock::new(), queue)
    }

    /// Posts all operations in the batch as [`post`](Self::post) does, for callers that are already in an
    /// RCU read-side critical section.
    ///
    /// # Errors
    ///
    /// Those of [`post`](Self::post).
    #[inline(always)]
    pub fn post_within(&mut self, section: &RcuSection, queue: &QueuePair<E>) -> Result {
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
        // SAFETY: A batch whose operations must be taken back has no queue pair, so `refused` is false, and
        // the work requests are complete, by the type invariants. The memory that they name belongs to the slots; slots of posted work
        // requests are given up below. The last work request of each slot is in `requests`, so it does
        // not change when the slot completes.
        match unsafe { queue.try_post(section, self.list) } {
            Ok(()) => {
                self.clear();
                Ok(())
            }
            // SAFETY: The list was posted above.
            Err(failure) => unsafe { self.failed(section, queue, failure) },
        }
    }

    /// Handles a failure to post the batch.
    ///
    /// # Safety
    ///
    /// `failure` must be that of posting the list of the batch to `queue`, within the critical section of
    /// `_section`.
    // Apart, so that the common path keeps nothing for it.
    #[cold]
    #[inline(never)]
    unsafe fn failed(
        &mut self,
        _section: &RcuSection,
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

    /// Keeps the operations that were not posted, after the first `posted` work requests were.
    fn refuse(&mut self, error: Error, posted: u32) -> Result {
        // INVARIANT: Operations before `taken` belong to the device, or are partially posted.
        (self.taken, _) = self.entries().posted(posted);
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
            if let Some(cqe) = request.completes() {
                break cqe.cast::<Slot<T>>();
            }
        };
        // INVARIANT: The batch no longer owns the slot.
        self.taken = index;
        // SAFETY: By the type invariants the batch owned the slot, and nothing of the slot is posted.
        Some(unsafe { Operation::from_posted(slot) })
    }
}

/// The operations of a batch that could not be posted whole.
///
/// Reads only the memory of the batch: what the operations own may have completed. A registration is in the
/// memory of its operation, and a work request of the batch follows it, see
/// [`Chain::register_and_send`](super::Chain::register_and_send). So the work request that the one before
/// links to is this one, or the registration before it.
///
/// # Invariants
///
/// `requests` points to `count` work requests, those of a [`Batch`] that are in use. They stay there as long
/// as this exists, and nobody else writes to them meanwhile but through these pointers. The list of the batch
/// begins with `first`, and ends with `last`.
#[derive(Clone, Copy)]
struct Entries {
    requests: *const Request,
    count: usize,
    first: *mut bindings::ib_send_wr,
    last: *mut bindings::ib_send_wr,
}

/// A work request of a batch, with the registration before it, if there is one.
struct BatchedRequest {
    /// The registration, or the work request.
    first: *const bindings::ib_send_wr,
    wr: *const bindings::ib_send_wr,
    /// Number of work requests of the list before these.
    before: u32,
    /// Completion entry of the operation, if this is its last work request.
    completes: Option<NonNull<CqeNode>>,
}

impl BatchedRequest {
    /// Returns the number of work requests of the list up to this one, including it.
    fn end(&self) -> u32 {
        let own = if ptr::eq(self.first, self.wr) { 1 } else { 2 };
        self.before.saturating_add(own)
    }
}

impl Entries {
    /// Returns the work requests in the order of the list.
    fn iter(self) -> impl Iterator<Item = BatchedRequest> {
        let (mut next, mut before) = (self.first.cast_const(), 0);
        (0..self.count).map(move |index| {
            // SAFETY: By the type invariants.
            let request = unsafe { &*self.requests.add(index) };
            let batched = BatchedRequest {
                first: next,
                wr: request.wr(),
                before,
                completes: request.completes().map(NonNull::cast),
            };
            next = request.wr().next;
            before = batched.end();
            batched
        })
    }

    /// Returns the number of requests whose operations are posted at least in part, if `posted` work
    /// requests are. Also returns the operation that is posted in part, if any.
    #[cold]
    #[inline(never)]
    fn posted(self, posted: u32) -> (usize, Option<NonNull<CqeNode>>) {
        let (mut taken, mut number, mut begin) = (0usize, 0usize, 0);
        for request in self.iter() {
            number = number.saturating_add(1);
            let Some(operation) = request.completes else {
                continue;
            };
            if begin >= posted {
                break;
            }
            if request.end() > posted {
                return (number, Some(operation));
            }
            (taken, begin) = (number, request.end());
        }
        (taken, None)
    }
}

impl PostedOperations for Entries {
    fn position(
        self,
        _first: *mut bindings::ib_send_wr,
        _length: u32,
        bad: *const bindings::ib_send_wr,
    ) -> Option<u32> {
        for request in self.iter() {
            if ptr::eq(request.first, bad) {
                return Some(request.before);
            }
            if ptr::eq(request.wr, bad) {
                return Some(request.before.saturating_add(1));
            }
        }
        None
    }

    fn last(&self, _first: *mut bindings::ib_send_wr, _length: u32) -> *mut bindings::ib_send_wr {
        self.last
    }

    fn split(self, posted: u32) -> Option<NonNull<CqeNode>> {
        self.posted(posted).1
    }
}

impl<E: QpContext, T: Complete<E>> Drop for Batch<E, T> {
    fn drop(&mut self) {
        while self.take_back().is_some() {}
    }
}
