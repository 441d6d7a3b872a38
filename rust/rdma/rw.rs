// SPDX-License-Identifier: GPL-2.0

//! Transfers: data of any size, read from or written to the memory of a peer.
//!
//! C header: [`include/rdma/rw.h`](srctree/include/rdma/rw.h)
//!
//! A server whose clients tell it where their data is moves it with RDMA READ and
//! WRITE. How many requests that takes, and whether the local memory must be
//! registered for them, is the device's: iWARP reads into registered memory only,
//! others take some pieces at once. A [`RdmaRw`] hides it. It owns the data, its
//! mapping, and its places in the send queue, so what cannot be posted is refused
//! when it is made:
//!
//! ```text
//!   RdmaRw::read / write ──▶ QueuePair::post_rdma_rw ──▶ Complete::complete
//!        (takes the data)            (once)                      │
//!              │                                                 ▼
//!              └────────────── RdmaRw::finish ◀────────────────┘
//!                             (gives it back)
//! ```
//!
//! The queue pair is made with room for [`RdmaRwCap`].
//!
//! A server that reads what its client has told it of:
//!
//! ```ignore
//! // samples/key_ping/server.rs
//! let read = RdmaRw::read(self.queue(), data, &source.into())
//!     .map_err(|(error, _)| error)
//!     .step("read")?;
//! // ...
//! let transferred = Operation::new(RwTransfer(transfer)).step(step)?;
//! self.queue().post_rdma_rw(transferred).step(step)?;
//! let connection = &self.connection;
//! let transferred = connection.wait(step, |events| events.transferred.take())?;
//! let nothing = || Failure::new(step, fmt!("no data"));
//! transferred.into_inner().0.finish().ok_or_else(nothing)
//! ```

pub use super::qp::RdmaRwCap;

use super::{
    device::NodeType,
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

/// What the core works on; it points into itself.
#[pin_data]
struct Work {
    #[pin]
    context: Opaque<bindings::rdma_rw_ctx>,
    #[pin]
    table: ScatterTable,
    #[pin]
    rw_cqe: RwCqe,
}

// SAFETY: What the core works on is tied to no thread.
unsafe impl Send for Work {}

/// What the last request completes with. The entry comes first, so its address is that of the whole.
#[pin_data]
#[repr(C)]
struct RwCqe {
    #[pin]
    entry: Opaque<bindings::ib_cqe>,
    /// The entry of the operation, which is told next; null if nothing was posted.
    operation: Cell<*mut bindings::ib_cqe>,
    /// All of it was carried out.
    moved: Cell<bool>,
}

impl RwCqe {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            entry <- Opaque::ffi_init(|entry: *mut bindings::ib_cqe| {
                // SAFETY: `entry` is the memory of the field to be written.
                unsafe { (*entry).done = Some(Self::completed) }
            }),
            operation: Cell::new(ptr::null_mut()),
            moved: Cell::new(false),
        })
    }

    /// The last request has completed.
    ///
    /// # Safety
    ///
    /// Called by the core with a completion whose `wr_cqe` is that of a report, after
    /// [`RdmaRw::post`], once.
    unsafe extern "C" fn completed(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: By the contract: the report stays until the operation is told, whose entry has its
        // function as it was posted.
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

/// Data, and what the core works on for it.
///
/// # Invariants
///
/// The `context` of the work is initialised for a queue pair, with the memory that its `table`
/// lists in the direction, which is that of the data, until it is destroyed.
struct RwContext<D> {
    work: Pin<KBox<Work>>,
    direction: Direction,
    data: D,
}

impl<D: Send> Deferred for RwContext<D> {
    unsafe fn release(&mut self, qp: *mut bindings::ib_qp) {
        // SAFETY: By the type invariants, which end here, and the contract.
        unsafe { destroy(&self.work, qp, self.direction) }
    }
}

/// Data on its way between us and the memory of a peer.
///
/// Once posted it is part of an [`Operation`] and out of reach. It may be dropped in
/// any context in which a reference to the queue pair and its data may be.
///
/// # Invariants
///
/// - `rw_context` is initialised for `queue`, if it is there.
/// - `requests` credits of the queue pair are ours as long.
pub struct RdmaRw<D: Scatter + Send + 'static, E: QpContext> {
    rw_context: Option<KBox<DeferredEntry<RwContext<D>>>>,
    requests: u32,
    /// It cannot be posted again, even if nothing could be.
    posted: Cell<bool>,
    queue: Arc<QueuePair<E>>,
}

impl<D: Scatter + Send + 'static, E: QpContext> RdmaRw<D, E>
where
    E::QpType: Reliable,
{
    /// Prepares to read what `remote` is about into `data`, which it fills
    /// (`rdma_rw_ctx_init`). May sleep.
    ///
    /// # Errors
    ///
    /// Gives `data` back: `EINVAL` if there is none, if it is longer than
    /// `remote` or wraps around the end of the address space, or if it takes more
    /// requests than the queue pair has room for; `EAGAIN` if others have
    /// taken what it needs, which comes back when one of them is finished;
    /// `ENOMEM`, or `EIO` if it cannot be mapped.
    pub fn read(
        queue: &Arc<QueuePair<E>>,
        data: D,
        remote: &RemoteKey,
    ) -> Result<Self, (Error, D)> {
        Self::new(queue, data, remote, Direction::FromDevice)
    }

    /// Prepares to write `data` to the beginning of what `remote` is about. May sleep.
    ///
    /// # Errors
    ///
    /// As [`RdmaRw::read`].
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
        // INVARIANT: Prepared for the memory of the data.
        let rw_context = DeferredEntry::new(RwContext {
            work,
            direction,
            data,
        });
        // INVARIANT: Prepared for this queue pair, with so many credits.
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
        if length == 0 || !remote.covers(length) {
            return Err(EINVAL);
        }
        // SAFETY: The queue pair is alive, and has pools of regions if the device
        // needs them, as its `RdmaRwCap` saw to; the context is pinned, and zero;
        // the list has so many entries, of memory that the data owns.
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
        if let Err(error) = queue.sq_credits().take(requests) {
            // SAFETY: Initialised above, never posted, and forgotten at once.
            unsafe { destroy(&work, queue.as_raw(), direction) };
            return Err(error);
        }
        Ok((work, requests))
    }
}

impl<D: Scatter + Send + 'static, E: QpContext> RdmaRw<D, E> {
    /// The requests that it takes: what the device makes of it.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Unmaps the data and gives it back, be it moved or never posted
    /// (`rdma_rw_ctx_destroy`). Any context in which a reference to the queue pair may be
    /// dropped.
    ///
    /// Of a read that failed on iWARP it does not come back: it is dropped when the queue pair is gone.
    pub fn finish(mut self) -> Option<D> {
        self.end()
            .map(|rw_context| KBox::into_inner(rw_context).into_value().data)
    }

    fn end(&mut self) -> Option<KBox<DeferredEntry<RwContext<D>>>> {
        let rw_context = self.rw_context.take()?;
        // Nothing is posted: the read or write is in our hands, so it completed or was never posted.
        if self.is_exposed(&rw_context) {
            // SAFETY: By the type invariants it is of the queue pair, and nothing is posted.
            unsafe { self.queue.deferred_release().add(rw_context) };
            return None;
        }
        // SAFETY: By the type invariants, which end here.
        unsafe { destroy(&rw_context.work, self.queue.as_raw(), rw_context.direction) };
        self.queue.sq_credits().put(self.requests);
        Some(rw_context)
    }

    /// Whether the peer may still write to the data: for iWARP it has a key to it, which only the
    /// success of the read makes invalid, or the end of the region, which is the queue pair's.
    fn is_exposed(&self, rw_context: &RwContext<D>) -> bool {
        let rw_cqe = &rw_context.work.rw_cqe;
        rw_context.direction == Direction::FromDevice
            && !rw_cqe.operation.get().is_null()
            && !rw_cqe.moved.get()
            && self.queue.device().attributes().node_type == NodeType::Rnic
    }

    /// Posts all requests, the last one with the entry `cqe`; on error says whether
    /// some were.
    ///
    /// # Safety
    ///
    /// This and the entry must stay until the completion.
    unsafe fn post(
        &self,
        queue: &QueuePair<E>,
        cqe: *mut bindings::ib_cqe,
    ) -> Result<(), (Error, bool)> {
        let Work {
            context, rw_cqe, ..
        } = match &self.rw_context {
            Some(rw_context) if ptr::eq(queue, &*self.queue) && !self.posted.get() => {
                &*rw_context.work
            }
            _ => return Err((EINVAL, false)),
        };
        self.posted.set(true);
        rw_cqe.operation.set(cqe);
        // SAFETY: By the type invariants and the contract. Called once, as each
        // call counts registrations.
        let first = unsafe {
            bindings::rdma_rw_ctx_wrs(
                context.get(),
                queue.as_raw(),
                queue.port(),
                rw_cqe.entry.get(),
                ptr::null_mut(),
            )
        };
        // SAFETY: The core has made a list of requests in its context.
        unsafe { report_failures(first, queue) };
        // SAFETY: The list is well-formed, and what it names stays by the contract.
        unsafe { queue.post_raw_send(first, &rcu::read_lock()) }
            .map_err(|(error, bad)| (error, !ptr::eq(bad, first)))
            .inspect_err(|(_, some)| {
                if !some {
                    rw_cqe.operation.set(ptr::null_mut());
                }
            })
    }
}

/// Has the requests ahead of the last one report their failure to the context of
/// the queue pair, which else had only the flush of the last one to go by.
///
/// # Safety
///
/// `first` must be a list of requests that nobody else uses, and be posted to `queue`.
unsafe fn report_failures<E: QpContext>(first: *mut bindings::ib_send_wr, queue: &QueuePair<E>) {
    let mut request = first;
    // SAFETY: By the contract.
    unsafe {
        while !(*request).next.is_null() {
            (*request).__bindgen_anon_1.wr_cqe = queue.unsignalled();
            request = (*request).next;
        }
    }
}

/// Gives back the regions that the core took, and unmaps the memory.
///
/// # Safety
///
/// `work.context` must be initialised for `qp`, which is alive, in `direction`, with the memory
/// of `work.table`; it is not afterwards. Nothing of it may be posted.
unsafe fn destroy(work: &Work, qp: *mut bindings::ib_qp, direction: Direction) {
    // SAFETY: By the contract.
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

/// An operation that moves data.
pub trait RwOperation<E: QpContext>: Complete<E> {
    /// What the data is in.
    type Data: Scatter + Send + 'static;

    /// The read or write.
    fn rdma_rw(&self) -> &RdmaRw<Self::Data, E>;
}

impl<E: QpContext> QueuePair<E> {
    /// Posts all requests of the operation's read or write (`rdma_rw_ctx_post`), which
    /// completes as one. Any context.
    ///
    /// # Errors
    ///
    /// Gives the operation back: `ENOTCONN` if the queue pair is being drained,
    /// `EINVAL` if it is of another queue pair or was posted before. It
    /// cannot be posted again.
    pub fn post_rdma_rw<T: RwOperation<E>>(
        &self,
        operation: Operation<T>,
    ) -> Result<(), Unposted<T>> {
        // SAFETY: The read or write is part of the body, so it stays with it; its last
        // request completes with the entry, and if posting fails, none does.
        unsafe { operation.post_with(self, |body, cqe| body.rdma_rw().post(self, cqe)) }
    }
}
