// SPDX-License-Identifier: GPL-2.0

//! Queue pairs.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_qp`
//!
//! A [`QueuePair`] is created by the connection manager ([`Addressed`](super::cm::Addressed),
//! [`Incoming`](super::cm::Incoming)), or by [`create`] and then connected by hand. It owns its
//! [`QpContext`], the consumer's data, which the completion handlers reach through the queue pair.
//! The type of the context sets the transport service of the queue pair, its [`QpType`].
//!
//! Only completions use a queue pair on their own. [`QueuePair::drain`] waits
//! for the last of them. A posted operation
//! with a `CreditedMessage` or an `RdmaRw` has a reference to its queue pair. So the types of a connection
//! drain its queue pair when they are dropped, by hand ([`Rts`]) or of the connection manager. Each queue pair
//! has such an owner. The last reference to a queue pair may be dropped in any context. In atomic context, its context
//! is dropped at once, and a work item destroys the queue pair of the device.
//!
//! A queue pair that is connected by hand goes from [`Reset`] to [`Rts`]:
//!
//! ```ignore
//! // samples/common/peer.rs
//! let rtr = init.into_rtr(rc::Rtr {
//!     path: self.path,
//!     path_mtu: self.mtu,
//!     dest_qpn: self.qpn,
//!     rq_psn: self.psn,
//!     max_dest_rd_atomic: reads,
//!     min_rnr_timer: RNR_TIMER,
//! })?;
//! rtr.into_rts(rc::Rts {
//!     sq_psn: psn,
//!     timeout: TIMEOUT,
//!     retry_count: RetryCount::MAX,
//!     rnr_retry: RetryCount::FOR_EVER,
//!     max_rd_atomic: reads,
//! })
//! ```

mod attributes;
mod cq_entries;
mod deferred_release;
mod drain;
mod event_guard;
mod groups;
mod init_attr;
mod numbers;
mod owned_qp;
mod partially_posted;
mod qp_cap;
mod qp_type;
pub mod rc;
mod state;
mod transition;
mod typestate;
pub mod uc;
pub mod ud;
mod unused_qp;

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

pub(super) use cq_entries::Srq;
pub(super) use deferred_release::{
    Deferred,
    DeferredEntry,
    DeferredRelease, //
};
pub(super) use groups::Group;
pub(super) use owned_qp::OwnedQp;
pub(super) use partially_posted::{
    CqeNode,
    ForCompletion,
    PartiallyPosted, //
};
pub(crate) use qp_type::sealed::Sealed;

use cq_entries::QpCqEntries;
use drain::{
    DrainState,
    Marker,
    Sends, //
};
use event_guard::{
    EventGuard,
    RunningEvents, //
};
use groups::Groups;
use unused_qp::UnusedQp;

use super::{
    cq::{
        Completion,
        CompletionQueue,
        Registrations,
        WcError, //
    },
    credits::Credits,
    device::DeviceRef,
    pd::{
        LocalMemory,
        ProtectionDomain, //
    },
    sleeping_drop::{
        may_sleep,
        SleepingDrop, //
    },
};
use crate::{
    bindings,
    errno::check,
    sync::{
        new_irq_lock,
        new_mutex,
        IrqLock,
        RcuSection,
        RelaxedBool,
        TimedCompletion, //
    },
    text::kernel_display, //
};
use core::{
    ffi::c_void,
    fmt,
    mem::offset_of,
    ptr::{
        self,
        NonNull, //
    },
    sync::atomic::{
        fence,
        Ordering::{
            Acquire,
            Release, //
        },
    },
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc,
        Mutex, //
    },
    types::Opaque,
};

/// The consumer's data of a queue pair, with its error callbacks.
pub trait QpContext: Sized + Send + Sync + 'static {
    /// The transport service of the queue pair.
    type QpType: QpType;

    /// Handles the failure of a work request that is signalled on failure only, such as a registration.
    /// The queue pair is in its error state. Runs in the context in which the completion queue is
    /// polled.
    fn failed(queue: &QueuePair<Self>, failure: WcError);

    /// Handles an error that no completion reports: the device has moved the queue pair to its error state,
    /// and posted work requests are only flushed. Runs in any context, including that of
    /// [`QueuePair::post_send`], or with local interrupts disabled. Must not drop the last reference to the queue
    /// pair, which waits for this.
    fn faulted(queue: &QueuePair<Self>, fault: Fault);
}

/// Reason why a queue pair entered its error state, or was closed, without a failed work request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The peer violated the access rights of memory (`IB_EVENT_QP_ACCESS_ERR`).
    Access,
    /// The peer sent an invalid request (`IB_EVENT_QP_REQ_ERR`).
    Request,
    /// An error that no request caused (`IB_EVENT_QP_FATAL`).
    Fatal,
    /// Only the first work requests of an operation could be posted. The queue pair is closed by
    /// this crate.
    Unposted(Error),
    /// The device accepted work requests and then failed to start them. The queue pair is closed by
    /// this crate.
    Stuck(Error),
}

impl Fault {
    /// Returns the fault of an event, or `None` if the event is no fault.
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
            Self::Access => "QP access error: the peer violated memory access rights",
            Self::Request => "QP request error: the peer sent an invalid request",
            Self::Fatal => "QP fatal error: the device gave up the queue pair",
            Self::Unposted(_) => "posting failed: the device took only a part of an operation",
            Self::Stuck(_) => "posting failed: the device could not start what it accepted",
        })
    }
}

kernel_display!(Fault);

/// Serial number of the next queue pair. 64 bits do not wrap around.
static SERIAL: Atomic<u64> = Atomic::new(0);

/// A queue pair with its consumer's context.
///
/// # Invariants
///
/// - `raw` is a queue pair created with `init_attr` and owned by this object. Its `qp_context` is
///   the address of this object, which is pinned.
/// - Nothing is posted once `closed` is set and an RCU grace period has passed.
/// - While `drain_state` is `Idle`, no posted work request is outstanding.
/// - This object is in an `Arc`. While work requests may be outstanding, it has a reference to it: the owner
///   of the connection, whose drop drains, or else the work item of the drain.
#[pin_data(PinnedDrop)]
pub struct QueuePair<E: QpContext> {
    raw: NonNull<bindings::ib_qp>,
    #[pin]
    unsignalled: Opaque<bindings::ib_cqe>,
    closed: RelaxedBool,
    /// No receives can be posted: the queue pair is closed, or has a shared receive queue.
    no_receives: RelaxedBool,
    /// The queue pair may have been in the RTR state, in which it takes receives.
    has_received: RelaxedBool,
    /// The connection has an initiator depth of 0: a read or atomic operation would never be sent.
    no_reads: RelaxedBool,
    /// A read was refused, and a message logged.
    read_refused: RelaxedBool,
    #[pin]
    drain_state: Mutex<DrainState>,
    #[pin]
    sends: Sends,
    #[pin]
    send_marker: Marker,
    #[pin]
    receive_marker: Marker,
    /// Completed on `IB_EVENT_QP_LAST_WQE_REACHED`: no more shared receives are taken.
    #[pin]
    last_receive: TimedCompletion,
    /// Credits of the send queue for the work requests of a [`Chain`](super::wr::Chain).
    pub(super) sq_credits: Credits,
    /// Credits of the send queue for RDMA reads and writes, see [`rw`](super::rw).
    pub(super) rw_credits: Credits,
    /// Credits of the receive queue.
    pub(super) rq_credits: Credits,
    /// Released when the queue pair is destroyed.
    #[pin]
    pub(super) deferred_release: DeferredRelease,
    #[pin]
    pub(super) partially_posted: PartiallyPosted,
    #[pin]
    groups: Groups,
    /// The CM ID that waits until the connection is established.
    #[pin]
    accepting: IrqLock<Option<NonNull<bindings::rdma_cm_id>>>,
    pub(super) registrations: Registrations,
    /// Copied to this struct because each I/O reads it twice.
    local_memory: LocalMemory,
    running_events: RunningEvents,
    // Returned after the queue pair was destroyed.
    cq_entries: Option<QpCqEntries>,
    init_attr: QpInitAttr<E>,
    #[pin]
    context: E,
}

// SAFETY: The verbs on a queue pair may be called from any thread, and the context is `Send` and
// `Sync`.
unsafe impl<E: QpContext> Send for QueuePair<E> {}
// SAFETY: Shared access calls only verbs, which may run concurrently, and the context is `Sync`.
unsafe impl<E: QpContext> Sync for QueuePair<E> {}

impl<E: QpContext> QueuePair<E> {
    /// Creates a queue pair of `init_attr` with `make`. `owner` is the name that `rdma res show qp`
    /// prints. May sleep.
    ///
    /// # Safety
    ///
    /// `make` must create a queue pair with exactly the attributes that it gets, and return it.
    /// Nobody else may use that queue pair any more when the result is dropped.
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
                // SAFETY: `cqe` points to the memory of the field that is being initialised.
                unsafe { (*cqe).done = Some(Self::unsignalled_failed) }
            }),
            closed: RelaxedBool::new(false),
            no_receives: RelaxedBool::new(init_attr.srq.is_some()),
            has_received: RelaxedBool::new(false),
            no_reads: RelaxedBool::new(false),
            read_refused: RelaxedBool::new(false),
            drain_state <- new_mutex!(DrainState::Live, "rrdma::QueuePair"),
            sends <- Sends::new(),
            send_marker <- Marker::new(),
            receive_marker <- Marker::new(),
            last_receive <- TimedCompletion::new(),
            sq_credits: Credits::new(init_attr.capacity.sends),
            rw_credits: Credits::new(init_attr.rdma_rw_requests()),
            rq_credits: Credits::new(init_attr.capacity.receives),
            running_events: RunningEvents::new(),
            cq_entries: Some(init_attr.take_cq_entries()?),
            deferred_release <- DeferredRelease::new(),
            partially_posted <- PartiallyPosted::new(),
            groups <- Groups::new(),
            accepting <- new_irq_lock!(None, "rrdma::QueuePair::accepting"),
            registrations: Registrations::new(
                SERIAL.fetch_add(1, ordering::Relaxed),
                init_attr.has_one_cq(),
                init_attr.device().checks_invalidated_keys(),
            ),
            local_memory: init_attr.pd.local_memory(),
            context <- context,
            // INVARIANT: The attributes have the address of this object as `qp_context`. Only moves
            // follow, so no later step can fail and leak the queue pair.
            raw: {
                // SAFETY: `this` is the address of the new object, and `init_attr` moves into that
                // object below.
                let mut attributes = unsafe { init_attr.attributes(this.as_ptr()) }?;
                if let Some(rdma_rw) = &init_attr.rdma_rw {
                    rdma_rw.prepare(init_attr.device(), &mut attributes)?;
                }
                make(init_attr.pd.as_raw(), &mut attributes)?
            },
            init_attr,
        }? Error);
        let queue = Arc::pin_init(init, GFP_KERNEL)?;
        // SAFETY: `raw` is alive by the type invariant, and the name is static.
        unsafe { bindings::ib_name_qp(queue.raw.as_ptr(), owner.as_char_ptr()) };
        queue.receive_events();
        Ok(queue)
    }

    /// Registers the event handler. The device may report an event as soon as it has created the queue
    /// pair, which is before this object is initialised. Such an event is lost, and the queue pair fails
    /// when it is used. C: `__ib_qp_event_handler()`.
    fn receive_events(&self) {
        // Orders the initialisation of this object before the handler. Pairs with the fence in `event`.
        fence(Release);
        // SAFETY: `raw` is alive by the type invariant. Another thread may only read the field.
        unsafe {
            (&raw mut (*self.raw.as_ptr()).registered_event_handler)
                .write_volatile(Some(Self::event));
        }
    }

    /// Returns the consumer's context. Any context.
    #[inline]
    pub fn context(&self) -> &E {
        &self.context
    }

    /// Returns the queue pair number, as the peer and `rdma res show qp` see it. Any context.
    pub fn number(&self) -> u32 {
        // SAFETY: `raw` is alive by the type invariant, and its number is constant.
        unsafe { (*self.raw.as_ptr()).qp_num }
    }

    /// Returns the protection domain. Any context.
    #[inline]
    pub fn protection_domain(&self) -> &Arc<ProtectionDomain> {
        &self.init_attr.pd
    }

    /// Returns the access of work requests to memory that is mapped for the device.
    #[inline]
    pub(super) fn local_memory(&self) -> LocalMemory {
        self.local_memory
    }

    /// Returns the completion queue of the sends. Any context.
    #[inline]
    pub fn send_cq(&self) -> &Arc<CompletionQueue> {
        &self.init_attr.send_cq
    }

    /// Returns the completion queue of the receives. Any context.
    #[inline]
    pub fn receive_cq(&self) -> &Arc<CompletionQueue> {
        &self.init_attr.receive_cq
    }

    /// Returns the shared receive queue that the queue pair takes its receives from, if it has one.
    #[inline]
    pub(super) fn srq(&self) -> Option<&Arc<dyn Srq>> {
        self.init_attr.srq.as_ref()
    }

    /// Returns the device. Any context.
    #[inline]
    pub fn device(&self) -> &DeviceRef {
        self.init_attr.pd.device()
    }

    /// Refuses further posting. Does not wait for posted work requests. Any context.
    pub fn close(&self) {
        self.no_receives.set(true);
        self.closed.set(true);
    }

    /// Returns whether the queue pair refuses posting. Any context.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Records that the queue pair may take receives from now on. To be called before the transition to RTR, or
    /// before the connection manager is told to connect the queue pair. Any context.
    pub(super) fn set_receiving(&self) {
        self.has_received.set(true);
    }

    /// Sets how many RDMA reads and atomic operations may be outstanding, when that is known. Any context.
    pub(super) fn set_initiator_depth(&self, depth: u8) {
        self.no_reads.set(depth == 0);
    }

    /// Refuses RDMA reads and atomic operations if the connection has an initiator depth of 0. Logs that once.
    /// Any context.
    #[inline]
    pub(super) fn check_reads(&self) -> Result {
        match self.no_reads.get() {
            true => Err(self.refuse_read()),
            false => Ok(()),
        }
    }

    fn refuse_read(&self) -> Error {
        if !self.read_refused.get() {
            self.read_refused.set(true);
            pr_err!(
                "{}: queue pair {}: RDMA read refused: the connection has an initiator depth of 0\n",
                self.device().name(),
                self.number()
            );
        }
        EINVAL
    }

    /// Sets whether nothing can be posted, which holds in the RESET state of a new queue pair. A
    /// queue pair in that state cannot be drained, as it cannot move to the error state. May sleep.
    fn set_idle(&self, idle: bool) {
        // INVARIANT: The caller has the only reference, and posts only after it passed `false`
        // here.
        *self.drain_state.lock() = match idle {
            true => DrainState::Idle,
            false => DrainState::Live,
        };
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_qp {
        self.raw.as_ptr()
    }

    /// Returns the number of the port; 0 as long as the core does not know it.
    pub(crate) fn port(&self) -> u32 {
        // SAFETY: `raw` is alive by the type invariant, and only a state transition writes the
        // port.
        unsafe { (*self.raw.as_ptr()).port }
    }

    /// Returns the serial number, which no other queue pair ever has.
    #[inline]
    pub(super) fn serial(&self) -> u64 {
        self.registrations.queue()
    }

    /// Returns how many bytes of inline data a work request may have.
    #[inline]
    pub(super) fn inline_bytes(&self) -> u32 {
        self.init_attr.inline_bytes
    }

    #[inline]
    pub(crate) fn unsignalled(&self) -> *mut bindings::ib_cqe {
        self.unsignalled.get()
    }

    /// Returns the queue pair of a completion.
    ///
    /// # Safety
    ///
    /// `wc` must be a completion of a queue pair made by `Self::create` that is
    /// alive for `'a`.
    #[inline]
    pub(crate) unsafe fn of_completion<'a>(wc: *const bindings::ib_wc) -> &'a Self {
        // SAFETY: By the safety requirements `qp` is alive and was made by `Self::create`. So its
        // `qp_context` is the address of its `QueuePair`, by the type invariant.
        unsafe { &*(*(*wc).qp).qp_context.cast::<Self>() }
    }

    /// Handles the failure of an unsignalled work request.
    ///
    /// # Safety
    ///
    /// Called by the core with the failure of a request posted on a queue pair
    /// made by `Self::create`.
    unsafe extern "C" fn unsignalled_failed(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: By the safety requirements; the queue pair is alive until it is drained, which
        // waits for this handler.
        let (queue, completion) = unsafe {
            let queue = Self::of_completion(wc);
            (queue, Completion::from_raw(cq, wc, &queue.registrations))
        };
        if let Err(failure) = completion.result() {
            E::failed(queue, failure);
        }
    }

    /// Handles an asynchronous event of the queue pair.
    ///
    /// # Safety
    ///
    /// Called by the core with an event of a queue pair made by `Self::create`, whose `qp_context` is
    /// `context`, after `receive_events`.
    unsafe extern "C" fn event(event: *mut bindings::ib_event, context: *mut c_void) {
        // SAFETY: The event is valid by the safety requirements, and the queue pair of the device until the device
        // has ended its event handlers.
        let (qp, kind) = unsafe { ((*event).element.qp, (*event).event) };
        let running = context.wrapping_byte_add(offset_of!(Self, running_events));
        let Some(running) = NonNull::new(running.cast::<RunningEvents>()) else {
            return;
        };
        // SAFETY: Before the object is freed, `ib_destroy_qp()` waits for this handler, or `RunningEvents::end`
        // has returned. The guard is dropped at the end of this function.
        let Some(_guard) = (unsafe { EventGuard::enter(qp, running) }) else {
            return;
        };
        // Pairs with the fence in `receive_events`, whose write the caller has read.
        fence(Acquire);
        // SAFETY: `context` is the `QueuePair` by the safety requirements, and alive as long as the guard exists.
        let queue = unsafe { &*context.cast::<Self>() };
        if kind == bindings::ib_event_type_IB_EVENT_COMM_EST {
            queue.communication_established();
        }
        if kind == bindings::ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED {
            queue.last_receive.complete_all();
        }
        if let Some(fault) = Fault::from_event(kind) {
            E::faulted(queue, fault);
        }
    }

    /// Tells the connection manager that the peer has sent, so that it need not wait for the last message of the
    /// exchange, which may be lost. Any context. C: `rdma_notify()`.
    #[cold]
    fn communication_established(&self) {
        let accepting = self.accepting.lock();
        if let Some(id) = *accepting {
            // SAFETY: The CM ID is valid while the lock is held, by `while_accepting`. An error means that the
            // connection is established already, or has ended.
            unsafe {
                bindings::rdma_notify(id.as_ptr(), bindings::ib_event_type_IB_EVENT_COMM_EST)
            };
        }
    }

    /// Calls `wait`, which waits until the connection of `id` is established. Meanwhile the connection manager is told
    /// if the peer sends. Sleeps.
    ///
    /// # Safety
    ///
    /// `id` must be valid until this returns.
    pub(super) unsafe fn while_accepting<R>(
        &self,
        id: NonNull<bindings::rdma_cm_id>,
        wait: impl FnOnce() -> R,
    ) -> R {
        *self.accepting.lock() = Some(id);
        let result = wait();
        *self.accepting.lock() = None;
        result
    }

    /// Posts `first` and the work requests linked to it (`ib_post_send`). On error it also returns
    /// the first work request that was not posted. Any context.
    ///
    /// A drain refuses new posts, and then waits until the threads that post have left their RCU read-side
    /// critical sections.
    ///
    /// Some devices fail and do not return which work request was not posted. soft-iWARP then has
    /// accepted all of them but cannot start its send queue, and completes them when the queue pair
    /// enters its error state. So the call succeeds, and the context gets [`Fault::Stuck`]. Other
    /// devices have accepted none: rdmavt does so if the state of the queue pair allows no sends.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the queue pair is closed.
    /// - Any error of the driver; `ENOMEM` if the send queue is full.
    ///
    /// # Safety
    ///
    /// The work requests must be well-formed, and the memory that they name must stay valid until
    /// they complete. If the service counts sends, the caller has [counted](QueuePair::count_sends)
    /// them.
    #[inline(always)]
    pub(crate) unsafe fn post_raw_send(
        &self,
        first: *const bindings::ib_send_wr,
        _section: &RcuSection,
    ) -> Result<(), (Error, *const bindings::ib_send_wr)> {
        if self.closed.get() {
            return Err((crate::errno::ENOTCONN, first));
        }
        let mut bad = ptr::null();
        // SAFETY: `raw` is alive by the type invariant. The rest are the safety requirements.
        let errno = unsafe { ib_post_send(self.as_raw(), first, &mut bad) };
        match check(errno) {
            Err(error) if bad.is_null() => {
                self.posted_or_stuck(error).map_err(|error| (error, first))
            }
            posted => posted.map_err(|error| (error, bad)),
        }
    }

    /// Returns the error for a receive that cannot be posted.
    #[cold]
    fn refuse_receive(&self) -> Error {
        match self.srq() {
            Some(_) if !self.closed.get() => EINVAL,
            _ => crate::errno::ENOTCONN,
        }
    }

    /// Takes a credit of the receive queue. Any context.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the receive queue is full; the error of a queue pair that takes no receives.
    #[inline]
    pub(super) fn take_receive_credit(&self) -> Result {
        match self.rq_credits.take(1) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.refuse_full()),
        }
    }

    fn refuse_full(&self) -> Error {
        match self.no_receives.get() {
            true => self.refuse_receive(),
            false => ENOMEM,
        }
    }

    /// Handles an error of a device that did not return which work request was not posted. Closes
    /// the queue pair if the device has accepted all of them; otherwise returns the error.
    #[cold]
    fn posted_or_stuck(&self, error: Error) -> Result {
        if !self.device().accepts_what_it_cannot_start() {
            return Err(error);
        }
        self.close();
        E::faulted(self, Fault::Stuck(error));
        Ok(())
    }

    /// Posts one receive (`ib_post_recv`), which has a credit of the receive queue. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the queue pair is closed.
    /// - `EINVAL`: the queue pair takes its receives from a shared queue.
    /// - Any error of the driver.
    ///
    /// # Safety
    ///
    /// The work request must be well-formed, and the memory that it names must stay valid until it
    /// completes.
    #[inline]
    pub(crate) unsafe fn post_raw_receive(
        &self,
        request: &bindings::ib_recv_wr,
        _section: &RcuSection,
    ) -> Result {
        if self.no_receives.get() {
            return Err(self.refuse_receive());
        }
        // SAFETY: `raw` is alive by the type invariant. The rest are the safety requirements.
        check(unsafe { ib_post_recv(self.as_raw(), request) })
    }
}

#[pinned_drop]
impl<E: QpContext> PinnedDrop for QueuePair<E> {
    fn drop(self: Pin<&mut Self>) {
        if !may_sleep() {
            return self.destroy_later();
        }
        // SAFETY: All entries of the list belong to this queue pair. It is drained, and destroyed
        // next.
        unsafe { self.deferred_release.release(self.as_raw()) };
        // SAFETY: `raw` is owned by the type invariant. It is drained, or nothing was posted, since work
        // requests hold a reference.
        // Nobody else uses it by the safety requirements of `create`; a multicast group holds a
        // reference while the queue pair is attached to it.
        unsafe { unused_qp::destroy(self.raw, self.device()) };
    }
}

impl<E: QpContext> QueuePair<E> {
    /// Leaves the queue pair of the device, with all that it uses, to a work item, because destroying it sleeps. To be
    /// called at the drop of this object. Any context.
    fn destroy_later(self: Pin<&mut Self>) {
        // SAFETY: `raw` is alive by the type invariant, with these handlers.
        unsafe { self.running_events.end(self.raw) };
        let this = self.project();
        // INVARIANT: As in the drop. No event is handled any more.
        let unused = UnusedQp {
            raw: *this.raw,
            deferred: this.deferred_release.take(),
            pd: this.init_attr.pd.clone(),
            // Moved: they may not be dropped here if the work item is faster.
            _cq_entries: this.cq_entries.take(),
            _srq: this.init_attr.srq.take(),
            _cqs: [
                this.init_attr.send_cq.clone(),
                this.init_attr.receive_cq.clone(),
            ],
        };
        drop(SleepingDrop::new(unused));
    }
}

/// Calls the driver's `post_send`, as the inline function `ib_post_send()` of `ib_verbs.h` does. A
/// C helper would add a function call to every I/O.
///
/// # Safety
///
/// `qp` must be alive. The work requests must be well-formed, and the memory that they name must
/// stay valid until they complete. `bad` must be valid for writes.
#[inline]
unsafe fn ib_post_send(
    qp: *mut bindings::ib_qp,
    wr: *const bindings::ib_send_wr,
    bad: *mut *const bindings::ib_send_wr,
) -> c_int {
    // SAFETY: `qp` is alive by the safety requirements, and the operations of its device are
    // constant. This crate gets only devices that have this one (`ib_device_check_mandatory`).
    unsafe { (*(*qp).device).ops.post_send.unwrap_unchecked()(qp, wr, bad) }
}

/// Calls the driver's `post_recv`, as the inline function `ib_post_recv()` of `ib_verbs.h` does.
///
/// # Safety
///
/// `qp` must be alive. The work request must be well-formed, and the memory that it names must stay
/// valid until it completes.
#[inline]
unsafe fn ib_post_recv(qp: *mut bindings::ib_qp, wr: *const bindings::ib_recv_wr) -> c_int {
    let mut bad = core::ptr::null();
    // SAFETY: `qp` is alive by the safety requirements, and the operations of its device are
    // constant. This crate gets only devices that have this one (`ib_device_check_mandatory`).
    unsafe { (*(*qp).device).ops.post_recv.unwrap_unchecked()(qp, wr, &mut bad) }
}
