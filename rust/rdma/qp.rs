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
mod deferred_release;
mod drain;
mod groups;
mod init_attr;
mod numbers;
mod partially_posted;
mod qp_cap;
mod qp_type;
pub mod rc;
mod sq_credits;
mod state;
mod transition;
mod typestate;
pub mod uc;
pub mod ud;

pub use attributes::Attributes;
pub use init_attr::QpInitAttr;
pub use numbers::{
    AckTimeout,
    Psn,
    Qpn,
    RetryCount,
    RnrTimer, //
};
pub use qp_cap::{
    QpCap,
    RdmaRwCap, //
};
pub use qp_type::{
    Connected,
    QpType,
    Rc,
    Reliable,
    Uc,
    Ud, //
};
pub use state::State;
pub use transition::{
    Cause,
    Error as TransitionError,
    Transition, //
};
pub use typestate::{
    create,
    Init,
    Reset,
    Rtr,
    Rts, //
};

pub(super) use deferred_release::{
    Deferred,
    DeferredEntry,
    DeferredRelease, //
};
pub(super) use groups::Group;
pub(super) use init_attr::Srq;
pub(super) use partially_posted::{
    CqeNode,
    PartiallyPosted, //
};
pub(crate) use qp_type::sealed::Sealed;
pub(super) use sq_credits::SqCredits;

use drain::Sends;
use groups::Groups;

use super::{
    cq::{
        Completion,
        CompletionQueue,
        Failure,
        Registrations, //
    },
    device::DeviceRef,
    pd::ProtectionDomain, //
};
use crate::{
    bindings,
    errno::check,
    sync::{
        RelaxedBool,
        TimedCompletion, //
    }, //
    text::kernel_display,
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
    /// Credits of the send queue for RDMA reads and writes.
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
                // SAFETY: The attributes move into the object, which `this` is.
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

    /// The shared queue that its receives are taken from, if there is one.
    #[inline]
    pub(super) fn srq(&self) -> Option<&Arc<dyn Srq>> {
        self.init_attr.srq.as_ref()
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
        let errno = unsafe { ib_post_send(self.as_raw(), first, &mut bad) };
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
        if self.srq().is_some() {
            return Err(EINVAL);
        }
        // SAFETY: By the contract and the type invariant.
        check(unsafe { ib_post_recv(self.as_raw(), request) })
    }
}

#[pinned_drop]
impl<E: QpContext> PinnedDrop for QueuePair<E> {
    fn drop(self: Pin<&mut Self>) {
        self.drain();
        // SAFETY: It is of this queue pair, which is destroyed now.
        unsafe { self.deferred_release.release(self.as_raw()) };
        // SAFETY: By the type invariants; drained, so nothing is posted, and whoever
        // knew the queue pair has forgotten it: groups too, which keep those that are
        // attached to them.
        unsafe { bindings::ib_destroy_qp(self.raw.as_ptr()) };
    }
}

/// As C's of this name, which is inline: a helper in C would be a call on the way of every I/O.
///
/// # Safety
///
/// `qp` must be a queue pair that is alive, the requests well-formed, and what they name must
/// stay until they complete. `bad` must be valid for writes.
#[inline]
unsafe fn ib_post_send(
    qp: *mut bindings::ib_qp,
    wr: *const bindings::ib_send_wr,
    bad: *mut *const bindings::ib_send_wr,
) -> c_int {
    // SAFETY: By the contract; the operations of a device are constant.
    match unsafe { (*(*qp).device).ops.post_send } {
        // SAFETY: By the contract.
        Some(post) => unsafe { post(qp, wr, bad) },
        // There is no device without.
        None => EINVAL.to_errno(),
    }
}

/// As C's of this name, which is inline.
///
/// # Safety
///
/// As [`ib_post_send`], but for `bad`.
#[inline]
unsafe fn ib_post_recv(qp: *mut bindings::ib_qp, wr: *const bindings::ib_recv_wr) -> c_int {
    let mut bad = core::ptr::null();
    // SAFETY: By the contract; the operations of a device are constant.
    match unsafe { (*(*qp).device).ops.post_recv } {
        // SAFETY: By the contract.
        Some(post) => unsafe { post(qp, wr, &mut bad) },
        // There is no device without.
        None => EINVAL.to_errno(),
    }
}
