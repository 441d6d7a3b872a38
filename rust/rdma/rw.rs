// SPDX-License-Identifier: GPL-2.0

//! RDMA reads and writes of data of any size.
//!
//! C header: [`include/rdma/rw.h`](srctree/include/rdma/rw.h)
//!
//! A server moves the data of its clients by RDMA READ and WRITE. The device determines how many
//! work requests that takes, and whether local memory must be registered. For example, iWARP reads
//! only into registered memory, and other devices have a maximum number of pieces per work request.
//!
//! An [`RdmaRw`] hides these differences. It owns the data, the mapping, and credits of the send
//! queue. So an error that would prevent posting is found when it is created. Its memory is an
//! [`RwContext`], which serves one read or write after the other:
//!
//! ```text
//!   RwContext::read / write ──▶ QueuePair::post_rdma_rw ──▶ Complete::complete
//!        ▲     (takes the data)         (once)                   │
//!        │                                                       ▼
//!        └─────────────────── RdmaRw::finish ◀───────────────────┘
//!                            (gives both back)
//! ```
//!
//! The queue pair must be created with capacity for them, see [`RdmaRwCap`].
//!
//! Reads memory that a client has advertised:
//!
//! ```ignore
//! // samples/key_ping/server.rs
//! let context = RwContext::new(self.queue()).step("read")?;
//! let read = context.read(data, &source.into()).step("read")?;
//! // ...
//! let transferred = Operation::new(RwTransfer(transfer)).step(step)?;
//! self.queue().post_rdma_rw(transferred).step(step)?;
//! let connection = &self.connection;
//! let transferred = connection.wait(step, |events| events.transferred.take())?;
//! let nothing = || StepError::new(step, fmt!("no data"));
//! transferred.into_inner().0.finish().ok_or_else(nothing)
//! ```

pub use super::qp::RdmaRwCap;

use super::{
    cq::Completion,
    dma::Direction,
    mr::RemoteKey,
    qp::{
        Deferred,
        DeferredEntry,
        QpContext,
        QueuePair,
        Reliable, //
    },
    wr::{
        Complete,
        CreditedMessage,
        Operation,
        Unposted, //
    },
};
use crate::{
    bindings,
    errno::check,
    scatter::{
        Listed,
        ScatterTable,
        Scatterlist, //
    },
    sync::{RcuReadLock, RcuSection},
};
use core::{
    cell::Cell,
    mem::{
        self,
        ManuallyDrop,
        MaybeUninit, //
    },
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

/// Data, and the state of the core's `rdma_rw` functions for it. It stays in its `KBox`, as it
/// points into itself.
///
/// # Invariants
///
/// - While `data` is `Some`, `raw` is initialised for the queue pair, in `direction`, with the memory in
///   `list`, which `data` owns. `list` is a list of `data`, or `table`.
/// - `failed` is false while `data` is `None`.
/// - `queue` is `Some` except in the list of a [`DeferredRelease`](super::qp::DeferredRelease).
struct State<D, E: QpContext> {
    raw: Opaque<bindings::rdma_rw_ctx>,
    table: ScatterTable,
    list: Scatterlist,
    direction: Direction,
    /// Number of work requests.
    requests: u32,
    /// Set by the first attempt to post; a second one is refused, even if the first one failed.
    posted: Cell<bool>,
    /// It was posted by [`QueuePair::post_rdma_rw`], and completed with a failure.
    failed: Cell<bool>,
    data: Option<D>,
    queue: Option<Arc<QueuePair<E>>>,
}

// SAFETY: Nothing in the state is bound to a thread. The data and the queue pair are `Send`.
unsafe impl<D: Send, E: QpContext> Send for State<D, E> {}

impl<D: Send, E: QpContext> Deferred for State<D, E> {
    unsafe fn release(&mut self, qp: *mut bindings::ib_qp) {
        // SAFETY: By the safety requirements. Only a state with data is deferred.
        unsafe { self.destroy(qp) }
    }
}

impl<D, E: QpContext> State<D, E> {
    /// Returns the queue pair of a state that is not deferred.
    #[inline]
    fn queue(&self) -> &QueuePair<E> {
        // SAFETY: By the type invariants. A deferred state has no `RwContext`, which is the only user.
        unsafe { self.queue.as_ref().unwrap_unchecked() }
    }

    /// Destroys `raw`: returns the regions to the core, and unmaps the memory.
    ///
    /// # Safety
    ///
    /// - `data` must be `Some`, and `raw` initialised for `qp`.
    /// - `qp` must be alive, and nothing of the state may be posted.
    /// - The caller takes the data, or does not use the state afterwards.
    #[inline]
    unsafe fn destroy(&self, qp: *mut bindings::ib_qp) {
        // SAFETY: By the safety requirements and the type invariants.
        unsafe {
            bindings::rdma_rw_ctx_destroy(
                self.raw.get(),
                qp,
                (*qp).port,
                self.list.first(),
                self.list.entries(),
                self.direction.as_raw(),
            )
        }
    }
}

/// Memory for RDMA reads and writes on a queue pair, one after the other. May be dropped in any
/// context in which a reference to the queue pair may be dropped.
///
/// # Invariants
///
/// Except in an [`RdmaRw`], the state has no data.
pub struct RwContext<D: Listed + Send + 'static, E: QpContext>(KBox<DeferredEntry<State<D, E>>>);

/// Reason why a read or write could not be prepared.
#[derive(Clone, Copy)]
pub enum Refusal {
    /// Others use the credits, or the regions, that it needs. Try again when one of them has finished.
    Busy,
    /// This error would be the same at the next attempt.
    Failed(Error),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Busy => EAGAIN,
            Refusal::Failed(error) => error,
        }
    }
}

/// Error of preparing a read or write, with the data and the context.
pub struct Unprepared<D: Listed + Send + 'static, E: QpContext> {
    /// The reason.
    pub refusal: Refusal,
    /// The data.
    pub data: D,
    /// The context, for another read or write.
    pub context: RwContext<D, E>,
}

/// Data and context of a read or write that has ended.
pub struct Finished<D: Listed + Send + 'static, E: QpContext> {
    /// The data.
    pub data: D,
    /// The context, for another read or write.
    pub context: RwContext<D, E>,
}

impl<D: Listed + Send + 'static, E: QpContext> RwContext<D, E>
where
    E::QpType: Reliable,
{
    /// Allocates a context for `queue`. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the queue pair was created without capacity for RDMA reads and writes. The core
    ///   would divide by its number of entries, which may be 0.
    /// - `ENOMEM`.
    pub fn new(queue: &Arc<QueuePair<E>>) -> Result<Self> {
        if queue.rw_credits.is_empty() {
            return Err(EINVAL);
        }
        // INVARIANT: There is no data.
        let state = State {
            raw: Opaque::zeroed(),
            table: ScatterTable::new(),
            list: Scatterlist::EMPTY,
            direction: Direction::FromDevice,
            requests: 0,
            posted: Cell::new(false),
            failed: Cell::new(false),
            data: None,
            queue: Some(queue.clone()),
        };
        Ok(Self(KBox::new(DeferredEntry::new(state), GFP_KERNEL)?))
    }

    /// Prepares an RDMA read from the start of `remote` that fills `data` (`rdma_rw_ctx_init`). May
    /// sleep.
    ///
    /// # Errors
    ///
    /// Returns the data and the context with [`Refusal::Busy`] or an errno:
    ///
    /// - `EINVAL`: `data` is empty, longer than `remote`, or needs more work requests than the
    ///   queue pair has capacity for.
    /// - `EINVAL`: `remote` wraps around the end of the address space, or `data` must not be accessed
    ///   in this direction.
    /// - `EIO`: the data cannot be mapped.
    /// - `ENOMEM`.
    #[inline]
    pub fn read(self, data: D, remote: &RemoteKey) -> Result<RdmaRw<D, E>, Unprepared<D, E>> {
        self.prepare(data, remote, Direction::FromDevice)
    }

    /// Prepares an RDMA write of `data` to the start of `remote` (`rdma_rw_ctx_init`). May sleep.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read).
    #[inline]
    pub fn write(self, data: D, remote: &RemoteKey) -> Result<RdmaRw<D, E>, Unprepared<D, E>> {
        self.prepare(data, remote, Direction::ToDevice)
    }

    #[inline(always)]
    fn prepare(
        mut self,
        data: D,
        remote: &RemoteKey,
        direction: Direction,
    ) -> Result<RdmaRw<D, E>, Unprepared<D, E>> {
        let state = &mut self.0.value;
        // By the type invariants there is no data to drop.
        // INVARIANT: `map` initialises the state with the memory of `data`, or it is taken below.
        mem::forget(state.data.replace(data));
        // SAFETY: Set above.
        let data = unsafe { state.data.as_mut().unwrap_unchecked() };
        // SAFETY: The table is in a `KBox`, and is not moved out of it.
        let list = data.list(unsafe { Pin::new_unchecked(&mut state.table) });
        let list = list.map_err(Refusal::Failed);
        match list.and_then(|list| self.map(list, remote, direction)) {
            // INVARIANT: `map` took the credits.
            Ok(()) => Ok(RdmaRw(ManuallyDrop::new(self))),
            Err(refusal) => Err(Unprepared {
                refusal,
                // SAFETY: Set above.
                data: unsafe { self.0.value.data.take().unwrap_unchecked() },
                context: self,
            }),
        }
    }

    /// Initialises the state, which has its data with this list, and takes the credits.
    #[inline(always)]
    fn map(
        &mut self,
        list: Scatterlist,
        remote: &RemoteKey,
        direction: Direction,
    ) -> Result<(), Refusal> {
        let state = &mut self.0.value;
        let (length, queue) = (list.length(), state.queue());
        let allows = |data: &D| data.allows(direction);
        if length == 0 || !remote.covers(length) || !state.data.as_ref().is_some_and(allows) {
            return Err(Refusal::Failed(EINVAL));
        }
        let queue = queue.as_raw();
        // Before the call, so that the compiler need not keep them for later.
        state.list = list;
        state.direction = direction;
        // SAFETY: The queue pair is alive. If the device needs regions, its `RdmaRwCap` created the
        // pool. `raw` is in a `KBox`, and is not initialised now. The list has so many entries, of
        // memory that `data` owns.
        let requests = unsafe {
            bindings::rdma_rw_ctx_init(
                state.raw.get(),
                queue,
                (*queue).port,
                list.first(),
                list.entries(),
                0,
                remote.address,
                remote.rkey,
                direction.as_raw(),
            )
        };
        check(requests).map_err(refused)?;
        let requests = requests as u32;
        state.requests = requests;
        state.posted.set(false);
        let queue = state.queue();
        queue.rw_credits.take(requests).map_err(|error| {
            // SAFETY: The state was initialised above for `queue`, and never posted. The caller takes
            // the data.
            unsafe { state.destroy(queue.as_raw()) };
            refused(error)
        })
    }
}

/// Returns what an error of the credits, or of the core, means. The core returns `EAGAIN` if it has no region left.
fn refused(error: Error) -> Refusal {
    match error {
        error if error == EAGAIN => Refusal::Busy,
        error => Refusal::Failed(error),
    }
}

/// Data that is read from or written to the memory of a peer.
///
/// While posted, it is part of an [`Operation`] and cannot be accessed. It may be dropped in any
/// context in which the data and a reference to the queue pair may be dropped.
///
/// # Invariants
///
/// - The state of the context has data, and is initialised for its queue pair.
/// - This object owns as many credits of the queue pair as it has `requests`.
/// - The context is taken only when this object ends.
pub struct RdmaRw<D: Listed + Send + 'static, E: QpContext>(ManuallyDrop<RwContext<D, E>>);

impl<D: Listed + Send + 'static, E: QpContext> RdmaRw<D, E> {
    #[inline]
    fn state(&self) -> &State<D, E> {
        &self.0 .0.value
    }

    #[inline]
    fn is_write(&self) -> bool {
        self.state().direction == Direction::ToDevice
    }

    /// Returns the data. It is not posted while this can be called: to post it takes a mutable reference.
    /// Any context.
    #[inline]
    pub fn data(&self) -> &D {
        // SAFETY: By the type invariants the state has data.
        unsafe { self.state().data.as_ref().unwrap_unchecked() }
    }

    /// Returns the number of work requests, which depends on the device. Any context.
    pub fn requests(&self) -> u32 {
        self.state().requests
    }

    /// Unmaps the data and returns it, whether it was transferred or not (`rdma_rw_ctx_destroy`). Any
    /// context in which a reference to the queue pair may be dropped.
    ///
    /// Returns `None` if an RDMA read failed on iWARP. The data is then dropped when the queue pair
    /// is destroyed. The region is unmapped before it is deregistered, so a peer on iWARP must have
    /// no other queue pair in the protection domain unless it is trusted.
    #[inline(always)]
    pub fn finish(self) -> Option<Finished<D, E>> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: This object is neither used nor dropped afterwards.
        unsafe { this.end() }
    }

    /// Ends the read or write, see [`finish`](Self::finish).
    ///
    /// # Safety
    ///
    /// `self` must not be used afterwards, nor be dropped.
    #[inline(always)]
    unsafe fn end(&mut self) -> Option<Finished<D, E>> {
        // SAFETY: By the safety requirements the context is taken once.
        let mut context = unsafe { ManuallyDrop::take(&mut self.0) };
        let state = &mut context.0.value;
        // The caller owns the read or write, so it has completed or was never posted.
        if state.failed.get() {
            // INVARIANT: The data, or the context, is taken below.
            state.failed.set(false);
            if is_exposed(state) {
                // SAFETY: By the type invariants the state has data. Nothing of it is posted.
                unsafe { defer(context) };
                return None;
            }
        }
        // SAFETY: By the type invariants, the state is initialised for the queue pair. Nothing of
        // it is posted. The data is taken next.
        unsafe { state.destroy(state.queue().as_raw()) };
        // SAFETY: By the type invariants the state has data.
        // INVARIANT: The data is taken.
        let data = unsafe { state.data.take().unwrap_unchecked() };
        state.queue().rw_credits.put(state.requests);
        Some(Finished { data, context })
    }

    /// Posts all work requests; the last one completes with `cqe`. The error has an errno, and
    /// whether some work requests were posted.
    ///
    /// # Safety
    ///
    /// `self` and `cqe` must be valid until the completion.
    #[inline(always)]
    unsafe fn post(
        &mut self,
        queue: &QueuePair<E>,
        cqe: *mut bindings::ib_cqe,
        section: &RcuSection,
    ) -> Result<(), (Error, bool)> {
        let state = self.begin(queue).map_err(|error| (error, false))?;
        // SAFETY: As for the call in `begin`. The safety requirements keep the entry valid.
        let mut first = unsafe { work_requests(state, queue, cqe, ptr::null_mut()) };
        // A driver may read the link of the last work request after that has completed, when the context is
        // freed. So the last one is posted from a copy.
        //
        // SAFETY: The list is one of the context, which nobody else uses, and its last work request that of
        // an RDMA read or write. The copy lives until the post has returned. By the safety requirements, the
        // memory that the list names stays valid.
        unsafe {
            let mut link = &raw mut first;
            while !(**link).next.is_null() {
                link = &raw mut (**link).next;
            }
            let mut last = (*link).cast::<bindings::ib_rdma_wr>().read();
            *link = &raw mut last.wr;
            post_list(queue, first, section)
        }
    }

    /// Posts all work requests of an RDMA write, followed by `send`. The error is that of
    /// [`post`](Self::post).
    ///
    /// # Safety
    ///
    /// `self`, and the memory that `send` names, must be valid until the completion of `send`, which
    /// is signalled.
    #[inline]
    unsafe fn post_before(
        &mut self,
        queue: &QueuePair<E>,
        send: &mut bindings::ib_send_wr,
        section: &RcuSection,
    ) -> Result<(), (Error, bool)> {
        let state = self.begin(queue).map_err(|error| (error, false))?;
        // SAFETY: As for the call in `begin`. `send` is a work request that nobody else uses.
        let first = unsafe { work_requests(state, queue, ptr::null_mut(), send) };
        // SAFETY: By the safety requirements, the memory that the list names stays valid.
        unsafe { post_list(queue, first, section) }
    }

    /// Returns the state for the only call of [`work_requests`].
    ///
    /// # Errors
    ///
    /// `EINVAL` if it belongs to another queue pair, or was posted before.
    #[inline]
    fn begin(&mut self, queue: &QueuePair<E>) -> Result<&State<D, E>> {
        let state = self.state();
        if !ptr::eq(queue, state.queue()) {
            return Err(EINVAL);
        }
        match state.posted.replace(true) {
            false => Ok(state),
            true => Err(EINVAL),
        }
    }
}

/// Keeps data that the peer may still write to until the queue pair is destroyed.
///
/// # Safety
///
/// The state must have data. Nothing of it may be posted.
#[cold]
unsafe fn defer<D: Listed + Send + 'static, E: QpContext>(mut context: RwContext<D, E>) {
    // Otherwise the queue pair would own itself.
    let Some(queue) = context.0.value.queue.take() else {
        return;
    };
    // SAFETY: By the safety requirements of this function.
    unsafe { queue.deferred_release.add(context.0) };
}

/// Returns whether the peer may still write to the data of a read or write that failed.
///
/// On iWARP, the peer has a key for the data of an RDMA read. The key is invalid only after the read
/// succeeded, or after the region is deregistered, with the queue pair.
#[cold]
fn is_exposed<D, E: QpContext>(state: &State<D, E>) -> bool {
    state.direction == Direction::FromDevice && state.queue().device().is_rnic()
}

/// Returns the list of the work requests. The last one completes with `cqe`; or, if that is null,
/// `next` follows.
///
/// # Safety
///
/// `state` must be a result of [`RdmaRw::begin`] for `queue`, for which this is called once, as each
/// call advances the keys of the regions. `next` must be null or a work request.
#[inline(always)]
unsafe fn work_requests<D, E: QpContext>(
    state: &State<D, E>,
    queue: &QueuePair<E>,
    cqe: *mut bindings::ib_cqe,
    next: *mut bindings::ib_send_wr,
) -> *mut bindings::ib_send_wr {
    // SAFETY: By the safety requirements the state is that of an `RdmaRw`, initialised for the queue
    // pair.
    let first = unsafe {
        bindings::rdma_rw_ctx_wrs(state.raw.get(), queue.as_raw(), queue.port(), cqe, next)
    };
    // SAFETY: `first` is the list of work requests in the state, which nobody else uses. `next` follows
    // the last of them.
    unsafe { report_failures(first, next, queue) };
    first
}

const _: () = assert!(mem::offset_of!(bindings::ib_rdma_wr, wr) == 0);

/// Posts a list of work requests. The error has an errno, and whether some were posted.
///
/// # Safety
///
/// `first` must be a result of [`work_requests`] for `queue`, and the memory that the list names must
/// be valid until its last work request completes. That one must be valid until this returns.
#[inline(always)]
unsafe fn post_list<E: QpContext>(
    queue: &QueuePair<E>,
    first: *mut bindings::ib_send_wr,
    section: &RcuSection,
) -> Result<(), (Error, bool)> {
    // SAFETY: The list is well-formed. The rest are the safety requirements.
    unsafe { queue.post_raw_send(first, section) }
        // The work requests have credits: a device that reports a full queue does not report what it
        // took.
        .map_err(|(error, bad)| (error, error == ENOMEM || !ptr::eq(bad, first)))
}

/// Makes all work requests but the last of the whole list report a failure to the context of the queue
/// pair. Otherwise only the last one would complete, as flushed, without the cause.
///
/// # Safety
///
/// `first` must be a list of work requests that nobody else uses, and that is posted to `queue`
/// next. `next` must be null, or the last one of the list, which is not the first.
#[inline(always)]
unsafe fn report_failures<E: QpContext>(
    first: *mut bindings::ib_send_wr,
    next: *mut bindings::ib_send_wr,
    queue: &QueuePair<E>,
) {
    let mut request = first;
    // SAFETY: By the safety requirements of this function.
    unsafe {
        // Most reads and writes are one work request.
        while (*request).next != next {
            (*request).__bindgen_anon_1.wr_cqe = queue.unsignalled();
            request = (*request).next;
        }
        if !next.is_null() {
            (*request).__bindgen_anon_1.wr_cqe = queue.unsignalled();
        }
    }
}

impl<D: Listed + Send + 'static, E: QpContext> Drop for RdmaRw<D, E> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and nothing uses the object afterwards. The context is a
        // `ManuallyDrop`.
        unsafe { self.end() };
    }
}

/// An operation with an RDMA read or write.
pub trait RwOperation<E: QpContext>: Complete<E> {
    /// The type that owns the data.
    type Data: Listed + Send + 'static;

    /// Returns the RDMA read or write; `None` if the operation has none now.
    ///
    /// The reference is mutable, so nobody has the data that is posted, even if it was leaked.
    fn rdma_rw(&mut self) -> Option<&mut RdmaRw<Self::Data, E>>;

    /// Handles the completion of the RDMA read or write, in place of
    /// [`complete`](Complete::complete), which this calls by default.
    #[inline]
    fn moved(operation: Operation<Self>, queue: &QueuePair<E>, completion: &Completion<'_>) {
        Self::complete(operation, queue, completion);
    }
}

/// Completes an operation whose RDMA read or write was posted on a queue pair with context `E`.
///
/// # Safety
///
/// Called by the core once after [`QueuePair::post_rdma_rw`], with the completion of the operation.
unsafe extern "C" fn moved<T: RwOperation<E>, E: QpContext>(
    cq: *mut bindings::ib_cq,
    wc: *mut bindings::ib_wc,
) {
    // SAFETY: By the safety requirements, `wr_cqe` is the entry of the operation, which was posted with
    // the flag of its read or write. The queue pair is alive until it is drained, which waits for this.
    unsafe {
        let queue = QueuePair::<E>::of_completion(wc);
        let slot = NonNull::new_unchecked((*wc).__bindgen_anon_1.wr_cqe).cast();
        if (*wc).status != bindings::ib_wc_status_IB_WC_SUCCESS {
            Operation::<T>::set_failed(slot);
        }
        let operation = Operation::<T>::from_posted(slot);
        let completion = Completion::from_raw(cq, wc, &queue.registrations);
        T::moved(operation, queue, &completion);
    }
}

/// An operation with a message, which may follow an RDMA write.
pub trait MessageOperation<E: QpContext>: Complete<E> {
    /// The type that owns the data of the RDMA write.
    type Data: Listed + Send + 'static;

    /// Returns the message.
    fn message(&mut self) -> &mut CreditedMessage<E>;

    /// Returns the RDMA write; `None` if the operation has none now.
    fn rdma_write(&mut self) -> Option<&mut RdmaRw<Self::Data, E>>;
}

impl<E: QpContext> QueuePair<E> {
    /// Posts all work requests of the operation's RDMA read or write, which completes once
    /// (`rdma_rw_ctx_post`). Any context.
    ///
    /// # Errors
    ///
    /// Returns the operation with the error. It cannot be posted again:
    ///
    /// - `ENOTCONN`: the queue pair is closed.
    /// - `EINVAL`: the operation has no read or write, or one that belongs to another queue pair or
    ///   was posted before.
    /// - Any error of the driver; `ENOMEM` if the send queue is full.
    // As a call, it costs 18 of the target's instructions of an 8 KiB write.
    #[inline(always)]
    pub fn post_rdma_rw<T: RwOperation<E>>(
        &self,
        operation: Operation<T>,
    ) -> Result<(), Unposted<T>> {
        let section = RcuReadLock::new();
        let slot = operation.begin_post_with(moved::<T, E>);
        // SAFETY: Once posted, the body is not accessed.
        let posted = match unsafe { Operation::sent_body_of(slot) }.rdma_rw() {
            // SAFETY: The reference is mutable, and what it was borrowed from is in the slot, or was leaked.
            // So nobody else has the read or write, and it is valid until the operation has completed. Its
            // state is in a `KBox`. Its last work request completes with the entry.
            Some(rdma_rw) => unsafe {
                Operation::set_failed_flag(slot, &rdma_rw.state().failed);
                rdma_rw.post(self, slot.as_ptr().cast(), &section)
            },
            None => Err((EINVAL, false)),
        };
        // SAFETY: `post` posts as it must, see there. If posting fails, nothing completes. The read
        // or write has its own credits.
        unsafe { Operation::end_post(slot, self, posted, &section) }
    }

    /// Posts all work requests of the operation's RDMA write, if it has one, and its message behind them,
    /// with which the operation completes (`rdma_rw_ctx_wrs`). The message invalidates the key
    /// `invalidate` of the peer (`IB_WR_SEND_WITH_INV`). For callers that are in an RCU read-side
    /// critical section; any context.
    ///
    /// # Errors
    ///
    /// Those of [`post_rdma_rw`](Self::post_rdma_rw), except that an operation may have no RDMA write;
    /// and `EINVAL` if it has an RDMA read instead, or if the message belongs to another queue pair.
    #[inline]
    pub fn post_message_within<T: MessageOperation<E>>(
        &self,
        section: &RcuSection,
        operation: Operation<T>,
        invalidate: Option<u32>,
    ) -> Result<(), Unposted<T>>
    where
        E::QpType: Reliable,
    {
        let slot = operation.begin_post();
        // SAFETY: The slot has the completion entry. The message and the write are part of its body and
        // so live as long. Once posted, the body is not accessed.
        let posted = unsafe {
            let body = Operation::sent_body_of(slot);
            self.post_body(body, slot.as_ptr().cast(), invalidate, section)
        };
        // SAFETY: `post_body` posts as it must, see there. If posting fails, nothing completes. The
        // message and the write have their own credits.
        unsafe { Operation::end_post(slot, self, posted, section) }
    }

    /// Posts the RDMA write of an operation, if it has one, and its message, which completes with `cqe`.
    ///
    /// # Safety
    ///
    /// `body` and `cqe` must be valid until the completion.
    #[inline(always)]
    unsafe fn post_body<T: MessageOperation<E>>(
        &self,
        body: &mut T,
        cqe: *mut bindings::ib_cqe,
        invalidate: Option<u32>,
        section: &RcuSection,
    ) -> Result<(), (Error, bool)>
    where
        E::QpType: Reliable,
    {
        let message = body.message();
        let mut send = MaybeUninit::uninit();
        let send = message.work_request(&mut send, self, cqe, invalidate);
        let send = send.map_err(|error| (error, false))?;
        match body.rdma_write() {
            // SAFETY: The safety requirements are the same.
            Some(write) if write.is_write() => unsafe { write.post_before(self, send, section) },
            Some(_) => Err((EINVAL, false)),
            None => {
                // SAFETY: By the safety requirements. A reliable service does not count sends.
                let posted = unsafe { self.post_raw_send(send, section) };
                posted.map_err(|(error, _)| (error, false))
            }
        }
    }
}
