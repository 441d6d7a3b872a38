// SPDX-License-Identifier: GPL-2.0

//! Queue pairs.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_qp`
//!
//! A [`QueuePair`] is made by the connection manager's
//! [`Addressed`](super::cm::Addressed) or [`Incoming`](super::cm::Incoming), or by
//! [`create`] and connected by hand. It owns its [`QpContext`], the consumer's state, which
//! every completion is given, and whose type says of which [`QpType`] the queue pair is.
//! Who may call it when it dies: only completions, and [`QueuePair::drain`] has waited for
//! the last one; dropping drains what was not.
//!
//! By hand, a queue pair goes from [`Reset`] to [`Rts`]:
//!
//! ```ignore
//! // samples/rc_pingpong.rs
//! let rtr = init.into_rtr(rc::Rtr {
//!     path: peer.path,
//!     path_mtu: peer.mtu,
//!     dest_qpn: peer.qpn,
//!     rq_psn: peer.psn,
//!     max_dest_rd_atomic: 1,
//!     min_rnr_timer: RNR_TIMER,
//! })?;
//! rtr.into_rts(rc::Rts {
//!     sq_psn: psn,
//!     timeout: TIMEOUT,
//!     retry_count: RetryCount::MAX,
//!     rnr_retry: RetryCount::FOR_EVER,
//!     max_rd_atomic: 1,
//! })
//! ```

mod attributes;
mod drain;
mod groups;
mod inline;
mod numbers;
mod qp_type;
pub mod rc;
mod state;
mod transition;
pub mod uc;
pub mod ud;

pub use attributes::Attributes;
pub use numbers::{
    AckTimeout,
    Psn,
    Qpn,
    RetryCount,
    RnrTimer, //
};
pub use qp_type::{
    Connected,
    QpType,
    Rc,
    Reliable,
    Uc,
    Ud, //
};
pub use state::{
    create,
    Init,
    Reset,
    Rtr,
    Rts,
    State, //
};
pub use transition::{
    Cause,
    Error as TransitionError,
    Transition, //
};

pub(super) use groups::Group;
pub(crate) use qp_type::sealed::Sealed;

use drain::Sends;
use groups::Groups;

use super::{
    cq::{
        Completion,
        CompletionQueue,
        Failure, //
    },
    device::{
        Device,
        DeviceRef, //
    },
    mr::Registrations,
    pd::ProtectionDomain,
    rw::{
        DeferredRelease,
        RdmaRwCap,
        SqCredits, //
    },
    srq::SharedReceiveQueue,
    wr::PartiallyPosted,
};
use crate::{
    bindings,
    errno::check,
    fmt::kernel_display,
    sync::{
        RelaxedBool,
        TimedCompletion, //
    }, //
};
use core::{
    ffi::c_void,
    fmt,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    new_mutex,
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        rcu,
        Arc,
        Mutex, //
    },
    types::Opaque,
};

/// The consumer's side of a queue pair.
pub trait QpContext: Sized + Send + Sync + 'static {
    /// The transport service of the queue pair.
    type QpType: QpType;

    /// A request that reports failure only (a registration) failed. The queue
    /// pair is in its error state. Runs where the completion queue is polled.
    fn failed(queue: &QueuePair<Self>, failure: Failure);

    /// The device has put the queue pair into its error state, and no request
    /// tells why: what is posted is merely flushed. Any context, that of
    /// [`QueuePair::post_send`] included.
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
    /// Of what was to be posted for one operation, only the beginning could be. The
    /// queue pair is closed, by us.
    Unposted(Error),
    /// The device has taken all that was to be posted, and then could not begin with
    /// it. The queue pair is closed, by us.
    Stuck(Error),
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
            Self::Unposted(_) => "the device took a part of an operation only",
            Self::Stuck(_) => "the device took requests that it cannot begin with",
        })
    }
}

kernel_display!(Fault);

/// Room in a queue pair; a drain needs one more a direction, which is added.
#[derive(Clone, Copy)]
pub struct QpCap {
    /// Send requests, registrations and invalidations that may be posted at once.
    pub sends: u32,
    /// Receives that may be posted at once.
    pub receives: u32,
    /// Pieces of memory of one send.
    pub send_sges: u32,
}

impl QpCap {
    /// Entries that a completion queue for both directions must have.
    pub fn completions(&self) -> u32 {
        // One a request, and one for each drain marker.
        self.sends.saturating_add(self.receives).saturating_add(2)
    }
}

/// What a queue pair of context `E` is made of.
pub struct QpInitAttr<E: QpContext> {
    pd: Arc<ProtectionDomain>,
    send_cq: Arc<CompletionQueue>,
    receive_cq: Arc<CompletionQueue>,
    capacity: QpCap,
    rdma_rw: Option<RdmaRwCap>,
    shared: Option<Arc<SharedReceiveQueue<E>>>,
    inline_bytes: u32,
}

impl<E: QpContext> QpInitAttr<E> {
    /// A queue pair of `pd` with the given room, whose sends and receives
    /// complete in `cq`.
    pub fn new(pd: Arc<ProtectionDomain>, cq: Arc<CompletionQueue>, capacity: QpCap) -> Self {
        Self {
            pd,
            send_cq: cq.clone(),
            receive_cq: cq,
            capacity,
            rdma_rw: None,
            shared: None,
            inline_bytes: 0,
        }
    }

    /// Lets requests hold so many bytes of [`Inline`](super::wr::Inline) data. A
    /// queue pair of more than the device can is not created.
    pub fn with_inline(mut self, bytes: u32) -> Self {
        self.inline_bytes = bytes;
        self
    }

    /// Lets receives complete in a queue of their own.
    pub fn with_receive_cq(mut self, cq: Arc<CompletionQueue>) -> Self {
        self.receive_cq = cq;
        self
    }

    /// Lets it take receives from this queue and have none of its own, whatever the
    /// capacity says. Its completion queue, which has to be one for both directions,
    /// needs room for all receives of the shared one.
    pub fn with_shared_receives(mut self, shared: Arc<SharedReceiveQueue<E>>) -> Self
    where
        E::QpType: Connected,
    {
        self.shared = Some(shared);
        self
    }

    /// Makes room for [transfers](super::rw), beside what the capacity says. The
    /// completion queue of sends needs room for their
    /// [requests](RdmaRwCap::requests), too.
    pub fn with_rdma_rw(mut self, rdma_rw: RdmaRwCap) -> Self {
        self.rdma_rw = Some(rdma_rw);
        self
    }

    /// The device of the domain.
    fn device(&self) -> &Device {
        self.pd.device()
    }

    /// Whether all parts are of this device.
    pub(crate) fn are_of(&self, device: &Device) -> bool {
        **self.pd.device() == *device
            && **self.send_cq.device() == *device
            && **self.receive_cq.device() == *device
    }

    /// # Safety
    ///
    /// The result is valid as long as `self` and, in use, as `queue`, which must
    /// be the address of the object to be.
    unsafe fn attributes(&self, queue: *mut QueuePair<E>) -> Result<bindings::ib_qp_init_attr> {
        let receives = match &self.shared {
            Some(shared) => {
                self.check_shared(shared)?;
                0
            }
            // One more for the marker of the drain.
            None => self.capacity.receives.checked_add(1).ok_or(EINVAL)?,
        };
        Ok(bindings::ib_qp_init_attr {
            event_handler: Some(QueuePair::<E>::event),
            qp_context: queue.cast(),
            send_cq: self.send_cq.as_raw(),
            recv_cq: self.receive_cq.as_raw(),
            srq: self.shared.as_ref().map_or(ptr::null_mut(), |s| s.as_raw()),
            // One more for the marker of the drain.
            cap: bindings::ib_qp_cap {
                max_send_wr: self.capacity.sends.checked_add(1).ok_or(EINVAL)?,
                max_recv_wr: receives,
                max_send_sge: self.capacity.send_sges,
                max_recv_sge: receives.min(1),
                max_inline_data: self.inline_bytes,
                ..pin_init::zeroed()
            },
            sq_sig_type: bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
            qp_type: E::QpType::QP_TYPE,
            ..pin_init::zeroed()
        })
    }

    /// Whether sends and receives complete in the same queue.
    fn has_one_cq(&self) -> bool {
        self.send_cq.as_raw() == self.receive_cq.as_raw()
    }

    /// The drain of a queue pair that shares receives needs one completion queue, see
    /// there; the memory of receives is of the domain of the shared queue.
    fn check_shared(&self, shared: &SharedReceiveQueue<E>) -> Result {
        if !self.has_one_cq() || shared.protection_domain().as_raw() != self.pd.as_raw() {
            return Err(EINVAL);
        }
        Ok(())
    }
}

/// Counts queue pairs; so many there will not be.
static SERIAL: Atomic<u64> = Atomic::new(0);

/// A queue pair with its consumer's context.
///
/// # Invariants
///
/// - `raw` is a queue pair of `init_attr`, owned by this object, whose
///   `qp_context` is the address of this object, which is pinned.
/// - Nothing is posted once `closed` is set and a grace period has passed.
/// - Nothing is posted while `idle` holds true.
#[pin_data(PinnedDrop)]
pub struct QueuePair<E: QpContext> {
    raw: NonNull<bindings::ib_qp>,
    #[pin]
    unsignalled: Opaque<bindings::ib_cqe>,
    closed: RelaxedBool,
    #[pin]
    idle: Mutex<bool>,
    #[pin]
    sends: Sends,
    /// The device has said that no more shared receives are taken.
    #[pin]
    last_receive: TimedCompletion,
    /// Free places of the send queue that are for transfers.
    sq_credits: SqCredits,
    /// Dropped when the queue pair is destroyed.
    #[pin]
    deferred_release: DeferredRelease,
    #[pin]
    partially_posted: PartiallyPosted,
    #[pin]
    groups: Groups,
    registrations: Registrations,
    init_attr: QpInitAttr<E>,
    #[pin]
    context: E,
}

// SAFETY: The verbs on a queue pair may be called from any thread; the context
// is `Send` and `Sync`.
unsafe impl<E: QpContext> Send for QueuePair<E> {}
// SAFETY: As above.
unsafe impl<E: QpContext> Sync for QueuePair<E> {}

impl<E: QpContext> QueuePair<E> {
    /// Creates a queue pair of `init_attr` with `make`. May sleep.
    ///
    /// # Safety
    ///
    /// `make` must create a queue pair of just the attributes that it is given
    /// and answer it; whoever else knows it must have forgotten it when the
    /// result is dropped.
    pub(crate) unsafe fn create(
        init_attr: QpInitAttr<E>,
        context: impl PinInit<E, Error>,
        owner: &'static CStr,
        make: impl FnOnce(
            *mut bindings::ib_pd,
            &mut bindings::ib_qp_init_attr,
        ) -> Result<NonNull<bindings::ib_qp>>,
    ) -> Result<Arc<Self>> {
        let init = try_pin_init!(&this in Self {
            unsignalled <- Opaque::ffi_init(|cqe: *mut bindings::ib_cqe| {
                // SAFETY: `cqe` is the memory of the field to be written.
                unsafe { (*cqe).done = Some(Self::unsignalled_failed) }
            }),
            closed: RelaxedBool::new(false),
            idle <- new_mutex!(false, "rrdma::QueuePair"),
            sends <- Sends::new(),
            last_receive <- TimedCompletion::new(),
            sq_credits: SqCredits::new(init_attr.rdma_rw.as_ref(), init_attr.device(), init_attr.capacity),
            deferred_release <- DeferredRelease::new(),
            partially_posted <- PartiallyPosted::new(),
            groups <- Groups::new(),
            registrations: Registrations::new(
                SERIAL.fetch_add(1, ordering::Relaxed),
                init_attr.has_one_cq(),
                init_attr.device().checks_invalidated_keys(),
            ),
            context <- context,
            // INVARIANT: Created with the address of this object as context.
            // Last but for moves, so that no later step can fail and leave it.
            raw: {
                // SAFETY: The parts move into the object, which `this` is.
                let mut attributes = unsafe { init_attr.attributes(this.as_ptr()) }?;
                if let Some(rdma_rw) = &init_attr.rdma_rw {
                    rdma_rw.prepare(init_attr.device(), &mut attributes)?;
                }
                make(init_attr.pd.as_raw(), &mut attributes)?
            },
            init_attr,
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
        &self.init_attr.pd
    }

    /// The completion queue of its sends.
    #[inline]
    pub fn send_cq(&self) -> &Arc<CompletionQueue> {
        &self.init_attr.send_cq
    }

    /// The completion queue of its receives.
    #[inline]
    pub fn receive_cq(&self) -> &Arc<CompletionQueue> {
        &self.init_attr.receive_cq
    }

    /// The queue that its receives are taken from, if that is shared.
    #[inline]
    pub fn shared_receives(&self) -> Option<&Arc<SharedReceiveQueue<E>>> {
        self.init_attr.shared.as_ref()
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> &DeviceRef {
        self.init_attr.pd.device()
    }

    /// Refuses further posting without waiting for what is posted. Any context.
    pub fn close(&self) {
        self.closed.set(true);
    }

    /// Says whether nothing can be posted: in the state that it is created in, from
    /// which there is no way to the error state either, so that it cannot be drained.
    fn set_idle(&self, idle: bool) {
        // INVARIANT: The caller has the only reference, through which it does not
        // post before it has said that something can be posted.
        *self.idle.lock() = idle;
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_qp {
        self.raw.as_ptr()
    }

    /// The port that it uses, as far as it is known.
    pub(crate) fn port(&self) -> u32 {
        // SAFETY: By the type invariant; the port changes with the state only.
        unsafe { (*self.raw.as_ptr()).port }
    }

    #[inline]
    pub(super) fn sq_credits(&self) -> &SqCredits {
        &self.sq_credits
    }

    pub(super) fn deferred_release(&self) -> &DeferredRelease {
        &self.deferred_release
    }

    #[inline]
    pub(super) fn partially_posted(&self) -> &PartiallyPosted {
        &self.partially_posted
    }

    /// What no other queue pair ever has.
    #[inline]
    pub(super) fn serial(&self) -> u64 {
        self.registrations.queue()
    }

    /// The registrations that it was asked for.
    #[inline]
    pub(super) fn registrations(&self) -> &Registrations {
        &self.registrations
    }

    /// Bytes that a request may hold itself.
    #[inline]
    pub(super) fn inline_bytes(&self) -> u32 {
        self.init_attr.inline_bytes
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
    unsafe extern "C" fn unsignalled_failed(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: By the contract; the queue pair is alive until drained.
        let (queue, completion) = unsafe {
            let queue = Self::of_completion(wc);
            (queue, Completion::from_raw(cq, wc, &queue.registrations))
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
        if kind == bindings::ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED {
            queue.last_receive.complete_all();
        }
        if let Some(fault) = Fault::from_event(kind) {
            E::faulted(queue, fault);
        }
    }

    /// Posts `first` and what follows it within a grace period, which a drain waits
    /// for; on error also the first request that was not posted.
    ///
    /// A device that fails and does not say at which request has taken them all: soft
    /// iWARP does so when it cannot start. They complete when the queue pair stops, so
    /// that is no error here, but [`Fault::Stuck`].
    ///
    /// # Safety
    ///
    /// The requests must be well-formed, and what they name must stay until they
    /// complete. If the service counts sends, they have been
    /// [counted](QueuePair::count_sends).
    #[inline]
    pub(crate) unsafe fn post_raw_send(
        &self,
        first: *const bindings::ib_send_wr,
        _grace: &rcu::Guard,
    ) -> Result<(), (Error, *const bindings::ib_send_wr)> {
        if self.closed.get() {
            return Err((crate::errno::ENOTCONN, first));
        }
        let mut bad = ptr::null();
        // SAFETY: By the contract and the type invariant.
        let errno = unsafe { inline::ib_post_send(self.as_raw(), first, &mut bad) };
        match check(errno) {
            Err(error) if bad.is_null() => {
                self.stuck(error);
                Ok(())
            }
            posted => posted.map_err(|error| (error, bad)),
        }
    }

    /// Gives up what the device cannot go on with.
    #[cold]
    fn stuck(&self, error: Error) {
        self.close();
        E::faulted(self, Fault::Stuck(error));
    }

    /// # Safety
    ///
    /// The request must be well-formed, and what it names must stay until it
    /// completes.
    #[inline]
    pub(crate) unsafe fn post_raw_receive(&self, request: &bindings::ib_recv_wr) -> Result {
        let _grace = rcu::read_lock();
        if self.closed.get() {
            return Err(crate::errno::ENOTCONN);
        }
        if self.init_attr.shared.is_some() {
            return Err(EINVAL);
        }
        // SAFETY: By the contract and the type invariant.
        check(unsafe { inline::ib_post_recv(self.as_raw(), request) })
    }
}

#[pinned_drop]
impl<E: QpContext> PinnedDrop for QueuePair<E> {
    fn drop(self: Pin<&mut Self>) {
        self.drain();
        // SAFETY: They are of this queue pair, which is destroyed now.
        unsafe { self.deferred_release.release(&self) };
        // SAFETY: By the type invariants; drained, so nothing is posted, and whoever
        // knew the queue pair has forgotten it: groups too, which keep those that are
        // attached to them.
        unsafe { bindings::ib_destroy_qp(self.raw.as_ptr()) };
    }
}
