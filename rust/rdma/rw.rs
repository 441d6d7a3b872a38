// SPDX-License-Identifier: GPL-2.0

//! RDMA reads and writes of data of any size.
//!
//! C header: [`include/rdma/rw.h`](srctree/include/rdma/rw.h)
//!
//! A server moves the data of its clients by RDMA READ and WRITE. The device determines how many
//! work requests that takes, and whether local memory must be registered. For example, iWARP reads
//! only into registered memory, and other devices have a maximum number of pieces per work request.
//!
//! A [`RdmaRw`] hides these differences. It owns the data, the mapping, and credits of the send
//! queue. So an error that would prevent posting is found when it is created:
//!
//! ```text
//!   RdmaRw::read / write ──▶ QueuePair::post_rdma_rw ──▶ Complete::complete
//!        (takes the data)            (once)                      │
//!              │                                                 ▼
//!              └────────────── RdmaRw::finish ◀──────────────────┘
//!                             (gives it back)
//! ```
//!
//! The queue pair must be created with capacity for them, see [`RdmaRwCap`].
//!
//! Reads memory that a client has advertised:
//!
//! ```ignore
//! // samples/key_ping/server.rs
//! let read = RdmaRw::read(self.queue(), data, &source.into()).step("read")?;
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
        Operation,
        Sge,
        Unposted, //
    },
};
use crate::{
    bindings,
    scatter::{
        Scatter,
        ScatterTable, //
    },
};
use core::{
    cell::Cell,
    ffi::c_int,
    ptr, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
    types::Opaque, //
};

/// State of the core's `rdma_rw` functions. Pinned, as it points into itself.
#[pin_data]
struct Work {
    #[pin]
    context: Opaque<bindings::rdma_rw_ctx>,
    #[pin]
    table: ScatterTable,
    #[pin]
    rw_cqe: RwCqe,
}

// SAFETY: Nothing in the state is bound to a thread.
unsafe impl Send for Work {}

/// Completion entry of the last work request. `entry` is the first member, so it has the address of
/// the whole.
#[pin_data]
#[repr(C)]
struct RwCqe {
    #[pin]
    entry: Opaque<bindings::ib_cqe>,
    /// Completion entry of the operation, which is completed next; null while nothing was posted.
    operation: Cell<*mut bindings::ib_cqe>,
    /// All data was moved.
    moved: Cell<bool>,
}

impl RwCqe {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            entry <- Opaque::ffi_init(|entry: *mut bindings::ib_cqe| {
                // SAFETY: `entry` points to the memory of the field that is being initialised.
                unsafe { (*entry).done = Some(Self::completed) }
            }),
            operation: Cell::new(ptr::null_mut()),
            moved: Cell::new(false),
        })
    }

    /// Records whether all data was moved, and completes the operation.
    ///
    /// # Safety
    ///
    /// Called by the core once after [`RdmaRw::post`], with a completion whose `wr_cqe` is the
    /// `entry` of an `RwCqe`.
    unsafe extern "C" fn completed(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: By the safety requirements `wr_cqe` is an `RwCqe`. It is valid until the
        // operation that owns it completes, below. The operation's entry has its `done` function,
        // because it was posted.
        unsafe {
            let rw_cqe = &*(*wc).__bindgen_anon_1.wr_cqe.cast::<Self>();
            rw_cqe
                .moved
                .set((*wc).status == bindings::ib_wc_status_IB_WC_SUCCESS);
            let operation = rw_cqe.operation.get();
            (*wc).__bindgen_anon_1.wr_cqe = operation;
            if let Some(done) = (*operation).done {
                done(cq, wc);
            }
        }
    }
}

/// Data, and the state of the core's `rdma_rw` functions for it.
///
/// # Invariants
///
/// Until it is destroyed, `work.context` is initialised for a queue pair, in `direction`, with the
/// memory in `work.table`, which `data` owns.
struct RwContext<D> {
    work: Pin<KBox<Work>>,
    direction: Direction,
    data: D,
}

impl<D: Send> Deferred for RwContext<D> {
    unsafe fn release(&mut self, qp: *mut bindings::ib_qp) {
        // SAFETY: By the type invariants, which end here. The rest are the safety requirements.
        unsafe { destroy(&self.work, qp, self.direction) }
    }
}

/// Data that is read from or written to the memory of a peer.
///
/// While posted, it is part of an [`Operation`] and cannot be accessed. It may be dropped in any
/// context in which the data and a reference to the queue pair may be dropped.
///
/// # Invariants
///
/// While `rw_context` is `Some`:
///
/// - `rw_context` is initialised for `queue`.
/// - This object owns `requests` credits of the queue pair.
pub struct RdmaRw<D: Scatter + Send + 'static, E: QpContext> {
    rw_context: Option<KBox<DeferredEntry<RwContext<D>>>>,
    requests: u32,
    /// Set by the first attempt to post; a second one is refused, even if the first one failed.
    posted: Cell<bool>,
    queue: Arc<QueuePair<E>>,
}

impl<D: Scatter + Send + 'static, E: QpContext> RdmaRw<D, E>
where
    E::QpType: Reliable,
{
    /// Prepares an RDMA read from the start of `remote` that fills `data` (`rdma_rw_ctx_init`). May
    /// sleep.
    ///
    /// # Errors
    ///
    /// Returns `data` with the error:
    ///
    /// - `EINVAL`: `data` is empty, longer than `remote`, or needs more work requests than the
    ///   queue pair has capacity for.
    /// - `EINVAL`: `remote` wraps around the end of the address space, or `data` must not be accessed
    ///   in this direction.
    /// - `EAGAIN`: others use the credits that it needs. Try again when one of them has finished.
    /// - `EIO`: the data cannot be mapped.
    /// - `ENOMEM`.
    pub fn read(
        queue: &Arc<QueuePair<E>>,
        data: D,
        remote: &RemoteKey,
    ) -> Result<Self, (Error, D)> {
        Self::new(queue, data, remote, Direction::FromDevice)
    }

    /// Prepares an RDMA write of `data` to the start of `remote` (`rdma_rw_ctx_init`). May sleep.
    ///
    /// # Errors
    ///
    /// Those of [`RdmaRw::read`].
    pub fn write(
        queue: &Arc<QueuePair<E>>,
        data: D,
        remote: &RemoteKey,
    ) -> Result<Self, (Error, D)> {
        Self::new(queue, data, remote, Direction::ToDevice)
    }

    fn new(
        queue: &Arc<QueuePair<E>>,
        mut data: D,
        remote: &RemoteKey,
        direction: Direction,
    ) -> Result<Self, (Error, D)> {
        let Ok(place) = KBox::new_uninit(GFP_KERNEL) else {
            return Err((ENOMEM, data));
        };
        let (work, requests) = match Self::prepare(queue, &mut data, remote, direction) {
            Ok(prepared) => prepared,
            Err(error) => return Err((error, data)),
        };
        // INVARIANT: `prepare` initialised the context with the memory of `data`.
        let rw_context = DeferredEntry::new(RwContext {
            work,
            direction,
            data,
        });
        // INVARIANT: `prepare` initialised the context for `queue`, and took so many credits.
        Ok(Self {
            rw_context: Some(KBox::write(place, rw_context)),
            requests,
            posted: Cell::new(false),
            queue: queue.clone(),
        })
    }

    fn prepare(
        queue: &QueuePair<E>,
        data: &mut D,
        remote: &RemoteKey,
        direction: Direction,
    ) -> Result<(Pin<KBox<Work>>, u32)> {
        let mut work = KBox::pin_init(
            pin_init!(Work {
                context: Opaque::zeroed(),
                table: ScatterTable::new(),
                rw_cqe <- RwCqe::new(),
            }),
            GFP_KERNEL,
        )?;
        data.fill(work.as_mut().project().table)?;
        let length = u32::try_from(work.table.length())?;
        if length == 0 || !remote.covers(length) || !data.allows(direction) {
            return Err(EINVAL);
        }
        // SAFETY: The queue pair is alive. If the device needs regions, its `RdmaRwCap` created the
        // pool. The context is pinned and zeroed. The list has so many entries, of memory that
        // `data` owns.
        let requests = unsafe {
            bindings::rdma_rw_ctx_init(
                work.context.get(),
                queue.as_raw(),
                queue.port(),
                work.table.sgl(),
                work.table.entries(),
                0,
                remote.address,
                remote.rkey,
                direction.as_raw(),
            )
        };
        to_result(requests.min(0))?;
        let requests = requests.unsigned_abs();
        if let Err(error) = queue.rw_credits.take(requests) {
            // SAFETY: The context was initialised above for `queue`, never posted, and is not used
            // afterwards.
            unsafe { destroy(&work, queue.as_raw(), direction) };
            return Err(error);
        }
        Ok((work, requests))
    }
}

impl<D: Scatter + Send + 'static, E: QpContext> RdmaRw<D, E> {
    fn is_write(&self) -> bool {
        let entry = self.rw_context.as_ref();
        entry.is_some_and(|entry| entry.value.direction == Direction::ToDevice)
    }

    /// Returns the data, which is not posted. `None` if it was given up.
    pub fn data(&self) -> Option<&D> {
        self.rw_context.as_ref().map(|entry| &entry.value.data)
    }

    /// Returns the number of work requests, which depends on the device.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Unmaps the data and returns it, whether it was moved or not (`rdma_rw_ctx_destroy`). Any
    /// context in which a reference to the queue pair may be dropped.
    ///
    /// Returns `None` if an RDMA read failed on iWARP. The data is then dropped when the queue pair
    /// is destroyed. The region is unmapped before it is deregistered, so a peer on iWARP must have
    /// no other queue pair in the protection domain unless it is trusted.
    pub fn finish(mut self) -> Option<D> {
        self.end()
            .map(|rw_context| KBox::into_inner(rw_context).value.data)
    }

    fn end(&mut self) -> Option<KBox<DeferredEntry<RwContext<D>>>> {
        let rw_context = self.rw_context.take()?;
        // The caller owns the read or write, so it has completed or was never posted.
        if self.is_exposed(&rw_context.value) {
            // SAFETY: By the type invariants the context belongs to `queue`. Nothing of it is
            // posted.
            unsafe { self.queue.deferred_release.add(rw_context) };
            return None;
        }
        let RwContext {
            work, direction, ..
        } = &rw_context.value;
        // SAFETY: By the type invariants, which end here. Nothing of the context is posted.
        unsafe { destroy(work, self.queue.as_raw(), *direction) };
        self.queue.rw_credits.put(self.requests);
        Some(rw_context)
    }

    /// Returns whether the peer may still write to the data. On iWARP, the peer has a key for the
    /// data of an RDMA read. The key is invalid only after the read succeeded, or after the region
    /// is deregistered, with the queue pair.
    fn is_exposed(&self, rw_context: &RwContext<D>) -> bool {
        let rw_cqe = &rw_context.work.rw_cqe;
        rw_context.direction == Direction::FromDevice
            && !rw_cqe.operation.get().is_null()
            && !rw_cqe.moved.get()
            && self.queue.device().is_rnic()
    }

    /// Posts all work requests; the last one completes with `cqe`. The error has an errno, and
    /// whether some work requests were posted.
    ///
    /// # Safety
    ///
    /// `self` and `cqe` must be valid until the completion.
    unsafe fn post(
        &self,
        queue: &QueuePair<E>,
        cqe: *mut bindings::ib_cqe,
    ) -> Result<(), (Error, bool)> {
        let work = self.begin(queue).map_err(|error| (error, false))?;
        work.rw_cqe.operation.set(cqe);
        // SAFETY: As for the call in `begin`. The safety requirements keep the entry valid.
        let first = unsafe { self.work_requests(work, work.rw_cqe.entry.get(), ptr::null_mut()) };
        // SAFETY: By the safety requirements, the memory that the list names stays valid.
        unsafe { self.post_list(first) }.inspect_err(|(_, some)| {
            if !some {
                work.rw_cqe.operation.set(ptr::null_mut());
            }
        })
    }

    /// Posts all work requests of an RDMA write, followed by `send`. The error is that of
    /// [`post`](Self::post).
    ///
    /// # Safety
    ///
    /// `self`, and the memory that `send` names, must be valid until the completion of `send`, which
    /// is signalled.
    unsafe fn post_before(
        &self,
        queue: &QueuePair<E>,
        send: &mut bindings::ib_send_wr,
    ) -> Result<(), (Error, bool)> {
        let work = self.begin(queue).map_err(|error| (error, false))?;
        // SAFETY: As for the call in `begin`. `send` is a work request that nobody else uses.
        let first = unsafe { self.work_requests(work, ptr::null_mut(), send) };
        // SAFETY: By the safety requirements, the memory that the list names stays valid.
        unsafe { self.post_list(first) }
    }

    /// Returns the state for the only call of [`work_requests`](Self::work_requests).
    ///
    /// # Errors
    ///
    /// `EINVAL` if it belongs to another queue pair, or was posted before.
    fn begin(&self, queue: &QueuePair<E>) -> Result<&Work> {
        match &self.rw_context {
            Some(rw_context) if ptr::eq(queue, &*self.queue) && !self.posted.get() => {
                self.posted.set(true);
                Ok(&rw_context.value.work)
            }
            _ => Err(EINVAL),
        }
    }

    /// Returns the list of the work requests. The last one completes with `cqe`; or, if that is
    /// null, `next` follows.
    ///
    /// # Safety
    ///
    /// `work` must be a result of [`begin`](Self::begin), for which this is called once, as each call
    /// advances the keys of the regions. `next` must be null or a work request.
    unsafe fn work_requests(
        &self,
        work: &Work,
        cqe: *mut bindings::ib_cqe,
        next: *mut bindings::ib_send_wr,
    ) -> *mut bindings::ib_send_wr {
        let queue = &*self.queue;
        // SAFETY: By the type invariants the context is initialised for the queue pair. The rest are
        // the safety requirements.
        let first = unsafe {
            bindings::rdma_rw_ctx_wrs(work.context.get(), queue.as_raw(), queue.port(), cqe, next)
        };
        // SAFETY: `first` is the list of work requests in the context, which nobody else uses.
        unsafe { report_failures(first, queue) };
        first
    }

    /// Posts a list of work requests. The error has an errno, and whether some were posted.
    ///
    /// # Safety
    ///
    /// `first` must be a result of [`work_requests`](Self::work_requests), and the memory that the
    /// list names must be valid until its last work request completes.
    unsafe fn post_list(&self, first: *mut bindings::ib_send_wr) -> Result<(), (Error, bool)> {
        // SAFETY: The list is well-formed. The rest are the safety requirements.
        unsafe { self.queue.post_raw_send(first, &rcu::read_lock()) }
            // The work requests have credits: a device that reports a full queue does not report
            // what it took.
            .map_err(|(error, bad)| (error, error == ENOMEM || !ptr::eq(bad, first)))
    }
}

/// Makes the work requests before the last one report a failure to the context of the queue pair.
/// Otherwise only the last one would complete, as flushed, without the cause.
///
/// # Safety
///
/// `first` must be a list of work requests that nobody else uses, and that is posted to `queue`
/// next.
unsafe fn report_failures<E: QpContext>(first: *mut bindings::ib_send_wr, queue: &QueuePair<E>) {
    let mut request = first;
    // SAFETY: By the safety requirements of this function.
    unsafe {
        while !(*request).next.is_null() {
            (*request).__bindgen_anon_1.wr_cqe = queue.unsignalled();
            request = (*request).next;
        }
    }
}

/// Destroys `work.context`: returns the regions to the core, and unmaps the memory.
///
/// # Safety
///
/// - `work.context` must be initialised for `qp`, in `direction`, with the memory in `work.table`.
/// - `qp` must be alive, and nothing of the context may be posted.
/// - The context must not be used afterwards.
unsafe fn destroy(work: &Work, qp: *mut bindings::ib_qp, direction: Direction) {
    // SAFETY: By the safety requirements of this function.
    unsafe {
        bindings::rdma_rw_ctx_destroy(
            work.context.get(),
            qp,
            (*qp).port,
            work.table.sgl(),
            work.table.entries(),
            direction.as_raw(),
        )
    }
}

impl<D: Scatter + Send + 'static, E: QpContext> Drop for RdmaRw<D, E> {
    fn drop(&mut self) {
        self.end();
    }
}

/// An operation with an RDMA read or write.
pub trait RwOperation<E: QpContext>: Complete<E> {
    /// The type that owns the data.
    type Data: Scatter + Send + 'static;

    /// Returns the RDMA read or write; `None` if the operation has none now.
    fn rdma_rw(&self) -> Option<&RdmaRw<Self::Data, E>>;
}

/// A message that is sent behind an RDMA write.
pub struct Message<'a> {
    /// The data of the message.
    pub sge: Sge<'a>,
    /// The key of the peer that the message invalidates (`IB_WR_SEND_WITH_INV`).
    pub invalidate: Option<u32>,
}

impl Message<'_> {
    /// Returns the signalled work request, whose piece is `sge`.
    fn work_request(
        &self,
        sge: &mut bindings::ib_sge,
        cqe: *mut bindings::ib_cqe,
    ) -> bindings::ib_send_wr {
        let mut send = bindings::ib_send_wr {
            sg_list: sge,
            num_sge: 1,
            opcode: bindings::ib_wr_opcode_IB_WR_SEND,
            send_flags: bindings::ib_send_flags_IB_SEND_SIGNALED as c_int,
            ..pin_init::zeroed()
        };
        send.__bindgen_anon_1.wr_cqe = cqe;
        if let Some(rkey) = self.invalidate {
            send.opcode = bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV;
            send.ex.invalidate_rkey = rkey;
        }
        send
    }
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
    pub fn post_rdma_rw<T: RwOperation<E>>(
        &self,
        operation: Operation<T>,
    ) -> Result<(), Unposted<T>> {
        let post = |body: &T, cqe| match body.rdma_rw() {
            // SAFETY: The read or write is part of the body and so lives as long. Its last work
            // request completes with the entry.
            Some(rdma_rw) => unsafe { rdma_rw.post(self, cqe) },
            None => Err((EINVAL, false)),
        };
        // SAFETY: `post` posts as it must, see there. If posting fails, nothing completes. The read
        // or write has its own credits.
        unsafe { operation.post_with(self, 0, post) }
    }

    /// Posts all work requests of the operation's RDMA write, and a message behind them, with which
    /// the operation completes (`rdma_rw_ctx_wrs`). Any context.
    ///
    /// # Errors
    ///
    /// Those of [`post_rdma_rw`](Self::post_rdma_rw), and `EINVAL` if the operation has an RDMA read,
    /// or if the memory of the message is mapped for another device or not for reading by the
    /// device.
    pub fn post_rdma_write_and_send<T: RwOperation<E>>(
        &self,
        operation: Operation<T>,
        message: impl for<'a> FnOnce(&'a T) -> Message<'a>,
    ) -> Result<(), Unposted<T>>
    where
        E::QpType: Reliable,
    {
        if let Err(error) = self.sq_credits.take(1) {
            return Err(Unposted { error, operation });
        }
        let post = |body: &T, cqe| {
            let write = body.rdma_rw().filter(|write| write.is_write());
            let write = write.ok_or((EINVAL, false))?;
            let message = message(body);
            let sge = message.sge.as_source(self.local_memory());
            let mut sge = sge.map_err(|error| (error, false))?;
            let mut send = message.work_request(&mut sge, cqe);
            // SAFETY: The write and the memory of the message are part of the body and so live as
            // long. The message completes with the entry.
            unsafe { write.post_before(self, &mut send) }
        };
        // SAFETY: `post` posts as it must, see there. If posting fails, nothing completes. The
        // message has the credit taken above; the write has its own.
        let posted = unsafe { operation.post_with(self, 1, post) };
        posted.inspect_err(|_| self.sq_credits.put(1))
    }
}
