// SPDX-License-Identifier: GPL-2.0

//! Reliable connected queue pairs.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_qp`
//!
//! A [`QueuePair`] is made by the connection manager's
//! [`Addressed`](super::cm::Addressed) and owns its [`Context`], the consumer's
//! state, which every completion is given. Who may call it when it dies: only
//! completions, and [`QueuePair::drain`] has waited for the last one; dropping
//! drains what was not.

use super::{
    cm::Lost,
    cq::{
        CompletionQueue,
        Failure, //
    },
    device::DeviceRef,
    pd::ProtectionDomain,
};
use crate::bindings;
use core::{
    ffi::c_void,
    fmt,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    new_mutex,
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            ordering,
            AtomicFlag, //
        },
        rcu,
        Arc,
        Mutex, //
    },
    types::Opaque,
};

/// The consumer's side of a queue pair.
pub trait Context: Sized + Send + Sync + 'static {
    /// A request that reports failure only (a registration) failed. The queue
    /// pair is in its error state. Runs where the completion queue is polled.
    fn failed(queue: &QueuePair<Self>, failure: Failure);

    /// The connection is gone, by the peer, the network or the device. Process
    /// context, may sleep, but may not drop the queue pair's connection. May be
    /// called more than once.
    fn lost(queue: &QueuePair<Self>, cause: Lost);

    /// The device has put the queue pair into its error state, and no request
    /// tells why: what is posted is merely flushed. Any context.
    fn faulted(queue: &QueuePair<Self>, fault: Fault);
}

/// Why a device puts a queue pair into its error state by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The peer has accessed memory that it may not, or not so.
    Access,
    /// The peer has sent a request that cannot be.
    Request,
    /// Something that is not about a request.
    Fatal,
}

impl Fault {
    /// `None` for what is no fault.
    fn from_event(event: bindings::ib_event_type) -> Option<Self> {
        match event {
            bindings::ib_event_type_IB_EVENT_QP_ACCESS_ERR => Some(Self::Access),
            bindings::ib_event_type_IB_EVENT_QP_REQ_ERR => Some(Self::Request),
            bindings::ib_event_type_IB_EVENT_QP_FATAL => Some(Self::Fatal),
            _ => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Access => "the peer accessed memory that it may not",
            Self::Request => "the peer sent a request that cannot be",
            Self::Fatal => "the device gave the queue pair up",
        })
    }
}

/// Room in a queue pair; a drain needs one more a direction, which is added.
#[derive(Clone, Copy)]
pub struct Capacity {
    /// Send requests, registrations and invalidations that may be posted at once.
    pub sends: u32,
    /// Receives that may be posted at once.
    pub receives: u32,
    /// Pieces of memory of one send.
    pub send_sges: u32,
}

impl Capacity {
    /// Entries that a completion queue for both directions must have.
    pub fn completions(&self) -> u32 {
        // One a request, and one for each drain marker.
        self.sends.saturating_add(self.receives).saturating_add(2)
    }
}

/// A reliable connected queue pair with its consumer's context.
///
/// # Invariants
///
/// - `raw` is a queue pair of `pd` on `cq`, owned by this object, whose
///   `qp_context` is the address of this object, which is pinned.
/// - Nothing is posted once `closed` is set and a grace period has passed.
#[pin_data(PinnedDrop)]
pub struct QueuePair<E: Context> {
    raw: NonNull<bindings::ib_qp>,
    #[pin]
    unsignalled: Opaque<bindings::ib_cqe>,
    closed: AtomicFlag,
    #[pin]
    drained: Mutex<bool>,
    cq: Arc<CompletionQueue>,
    pd: Arc<ProtectionDomain>,
    #[pin]
    context: E,
}

// SAFETY: The verbs on a queue pair may be called from any thread; the context
// is `Send` and `Sync`.
unsafe impl<E: Context> Send for QueuePair<E> {}
// SAFETY: As above.
unsafe impl<E: Context> Sync for QueuePair<E> {}

impl<E: Context> QueuePair<E> {
    /// Creates a queue pair in its Init state for the connection of `id`. May sleep.
    ///
    /// # Safety
    ///
    /// `id` must have resolved its address to the device of `pd` and `cq`, and
    /// have no queue pair. It must be destroyed before the result is dropped.
    pub(crate) unsafe fn create(
        id: *mut bindings::rdma_cm_id,
        pd: Arc<ProtectionDomain>,
        cq: Arc<CompletionQueue>,
        capacity: Capacity,
        context: impl PinInit<E, Error>,
        owner: &'static CStr,
    ) -> Result<Arc<Self>> {
        let init = try_pin_init!(&this in Self {
            unsignalled <- Opaque::ffi_init(|cqe: *mut bindings::ib_cqe| {
                // SAFETY: `cqe` is the memory of the field to be written.
                unsafe { (*cqe).done = Some(Self::unsignalled_failed) }
            }),
            closed: AtomicFlag::new(false),
            drained <- new_mutex!(false, "rrdma::QueuePair"),
            context <- context,
            // INVARIANT: Created with the address of this object as context.
            // Last but for moves, so that no later step can fail and leave it.
            // SAFETY: By the contract; `pd` and `cq` are alive.
            raw: unsafe {
                create_raw(id, pd.as_raw(), cq.as_raw(), capacity, this.as_ptr())
            }?,
            cq,
            pd,
        }? Error);
        let queue = Arc::pin_init(init, GFP_KERNEL)?;
        // SAFETY: By the type invariant; the name is static.
        unsafe { bindings::ib_name_qp(queue.raw.as_ptr(), owner.as_char_ptr()) };
        Ok(queue)
    }

    /// The consumer's context.
    #[inline]
    pub fn context(&self) -> &E {
        &self.context
    }

    /// The number of the queue pair, as the peer and `rdma res` know it.
    pub fn number(&self) -> u32 {
        // SAFETY: By the type invariant; the number is constant.
        unsafe { (*self.raw.as_ptr()).qp_num }
    }

    /// The protection domain.
    #[inline]
    pub fn protection_domain(&self) -> &Arc<ProtectionDomain> {
        &self.pd
    }

    /// The completion queue.
    #[inline]
    pub fn completion_queue(&self) -> &Arc<CompletionQueue> {
        &self.cq
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> &DeviceRef {
        self.pd.device()
    }

    /// Refuses further posting without waiting for what is posted. Any context.
    pub fn close(&self) {
        self.closed.store(true, ordering::Relaxed);
    }

    /// Moves the queue pair to its error state and waits until everything that
    /// was posted has completed (`ib_drain_qp`). Nothing can be posted
    /// afterwards. Sleeps; not from a completion or a connection event.
    pub fn drain(&self) {
        let mut drained = self.drained.lock();
        if *drained {
            return;
        }
        self.close();
        // SAFETY: May sleep here. Afterwards, whoever found the queue pair open
        // has posted: a request behind the drain's own would never be awaited.
        unsafe { bindings::synchronize_rcu_expedited() };
        // SAFETY: By the type invariants. The completion queue has room for the
        // drain's markers, see `Capacity::completions`.
        unsafe { bindings::ib_drain_qp(self.raw.as_ptr()) };
        *drained = true;
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_qp {
        self.raw.as_ptr()
    }

    #[inline]
    pub(crate) fn unsignalled(&self) -> *mut bindings::ib_cqe {
        self.unsignalled.get()
    }

    /// # Safety
    ///
    /// `wc` must be a completion of a queue pair made by `Self::create` that is
    /// alive for `'a`.
    #[inline]
    pub(crate) unsafe fn of_completion<'a>(wc: *const bindings::ib_wc) -> &'a Self {
        // SAFETY: By the contract and the type invariant.
        unsafe { &*(*(*wc).qp).qp_context.cast::<Self>() }
    }

    /// # Safety
    ///
    /// Called by the core with the failure of a request posted on a queue pair
    /// made by `Self::create`.
    unsafe extern "C" fn unsignalled_failed(_cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: By the contract; the queue pair is alive until drained.
        let (queue, completion) = unsafe {
            (
                Self::of_completion(wc),
                super::cq::Completion::from_raw(NonNull::new_unchecked(wc)),
            )
        };
        if let Err(failure) = completion.result() {
            E::failed(queue, failure);
        }
    }

    /// # Safety
    ///
    /// Called by the device with an event of a queue pair made by
    /// `Self::create`, whose `qp_context` is `context`.
    unsafe extern "C" fn event(event: *mut bindings::ib_event, context: *mut c_void) {
        // SAFETY: By the contract. The device is done with events before the
        // queue pair is destroyed, which the object outlives.
        let (queue, kind) = unsafe { (&*context.cast::<Self>(), (*event).event) };
        if let Some(fault) = Fault::from_event(kind) {
            E::faulted(queue, fault);
        }
    }

    /// Posts `first` and what follows it; on error also the first request that
    /// was not posted.
    ///
    /// # Safety
    ///
    /// The requests must be well-formed, and what they name must stay until they
    /// complete.
    #[inline]
    pub(crate) unsafe fn post_raw_send(
        &self,
        first: *const bindings::ib_send_wr,
    ) -> Result<(), (Error, *const bindings::ib_send_wr)> {
        let mut bad = first;
        let _grace = rcu::read_lock();
        if self.closed.load(ordering::Relaxed) {
            return Err((crate::errno::ENOTCONN, bad));
        }
        // SAFETY: By the contract and the type invariant.
        to_result(unsafe { bindings::ib_post_send(self.raw.as_ptr(), first, &mut bad) })
            .map_err(|error| (error, bad))
    }

    /// # Safety
    ///
    /// As [`QueuePair::post_raw_send`].
    #[inline]
    pub(crate) unsafe fn post_raw_receive(&self, request: &bindings::ib_recv_wr) -> Result {
        let _grace = rcu::read_lock();
        if self.closed.load(ordering::Relaxed) {
            return Err(crate::errno::ENOTCONN);
        }
        // SAFETY: By the contract and the type invariant.
        to_result(unsafe { bindings::ib_post_recv(self.raw.as_ptr(), request) })
    }
}

/// # Safety
///
/// As [`QueuePair::create`]; `queue` must be the address of the object to be.
unsafe fn create_raw<E: Context>(
    id: *mut bindings::rdma_cm_id,
    pd: *mut bindings::ib_pd,
    cq: *mut bindings::ib_cq,
    capacity: Capacity,
    queue: *mut QueuePair<E>,
) -> Result<NonNull<bindings::ib_qp>> {
    let mut attributes = bindings::ib_qp_init_attr {
        event_handler: Some(QueuePair::<E>::event),
        qp_context: queue.cast(),
        send_cq: cq,
        recv_cq: cq,
        // One more for the marker of the drain.
        cap: bindings::ib_qp_cap {
            max_send_wr: capacity.sends.checked_add(1).ok_or(EINVAL)?,
            max_recv_wr: capacity.receives.checked_add(1).ok_or(EINVAL)?,
            max_send_sge: capacity.send_sges,
            max_recv_sge: 1,
            ..pin_init::zeroed()
        },
        sq_sig_type: bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
        qp_type: bindings::ib_qp_type_IB_QPT_RC,
        ..pin_init::zeroed()
    };
    // SAFETY: By the contract.
    to_result(unsafe { bindings::rdma_create_qp(id, pd, &mut attributes) })?;
    // SAFETY: `rdma_create_qp` has set it.
    NonNull::new(unsafe { (*id).qp }).ok_or(EINVAL)
}

#[pinned_drop]
impl<E: Context> PinnedDrop for QueuePair<E> {
    fn drop(self: Pin<&mut Self>) {
        self.drain();
        // SAFETY: By the type invariants; drained, so nothing is posted, and the
        // connection's id, which knew the queue pair, is gone.
        unsafe { bindings::ib_destroy_qp(self.raw.as_ptr()) };
    }
}
