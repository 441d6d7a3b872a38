// SPDX-License-Identifier: GPL-2.0

//! An id of the connection manager, and the state that its handler works on.
//!
//! Nothing here depends on the consumer's types, so the handler is code of this
//! module, which outlives every consumer's: an id that ends while it is queued at
//! a [`RequestQueue`] is given up by the handler itself, and nobody can wait for that. It does
//! not sleep any more on its way out, for which this module's exit waits.

use super::{
    destination::Destination,
    Address,
    Cause,
    Endpoint,
    Error,
    Event,
    Lost,
    Observer,
    PeerParameters,
    Rejection,
    Stage,
    WaitLimits, //
};
use crate::{
    bindings,
    net::Namespace,
    rdma::{
        device::{
            Device,
            Port, //
        },
        qp::{
            QpInitAttr,
            QueuePair,
            Sealed, //
        },
    },
    sync::{
        Deadline,
        Msecs,
        TimedCompletion, //
    },
};
use core::{
    ffi::c_int,
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    new_mutex,
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        ArcBorrow,
        Mutex, //
    },
};

/// A queue pair that can lose its connection, whatever its context is.
pub(super) trait OnDisconnect: Send + Sync {
    fn lost(&self, cause: Lost);
}

impl<E: Endpoint> OnDisconnect for QueuePair<E> {
    fn lost(&self, cause: Lost) {
        E::lost(self, cause);
    }
}

/// Where the ids of requests wait to be taken.
pub(super) trait RequestQueue: Send + Sync {
    /// Gives up the id of `cm_handler`, if it waits still, and says whether it did. Called
    /// by its handler.
    fn remove(&self, cm_handler: &CmHandler) -> bool;
}

/// What the handler has heard of the step that is waited for.
type Answer = Result<(), Cause>;

/// What the handler has heard, and whom it tells.
struct CmState {
    answer: Option<Answer>,
    /// Nothing will come of the id any more.
    ended: Option<Cause>,
    established: bool,
    /// What the peer said when it asked for the connection, or accepted it.
    peer: Option<PeerParameters>,
    /// Where datagrams go: the answer to who asked for that.
    destination: Option<Destination>,
    /// The id is being destroyed: nothing of its device is kept any more.
    closed: bool,
    /// Told of the end of the connection.
    queue: Option<Arc<dyn OnDisconnect>>,
    /// Where the id waits to be taken.
    backlog: Option<Arc<dyn RequestQueue>>,
    /// Told of every event. Never of an id with a backlog: who gives that up is not waited for.
    observer: Option<Arc<dyn Observer>>,
    wake: Arc<TimedCompletion>,
}

/// What the handler works on.
#[pin_data]
pub(super) struct CmHandler {
    #[pin]
    state: Mutex<CmState>,
}

impl CmHandler {
    fn new(
        wake: Arc<TimedCompletion>,
        peer: Option<PeerParameters>,
        backlog: Option<Arc<dyn RequestQueue>>,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                state <- new_mutex!(CmState {
                    answer: None,
                    ended: None,
                    established: false,
                    peer,
                    destination: None,
                    closed: false,
                    queue: None,
                    backlog,
                    observer: None,
                    wake,
                }, "rrdma::cm::CmHandler"),
            }),
            GFP_KERNEL,
        )
    }

    fn answer(&self, answer: Answer) {
        let mut state = self.state.lock();
        state.answer = Some(answer);
        state.wake.complete();
    }

    fn established(&self, peer: PeerParameters) {
        let mut state = self.state.lock();
        state.established = true;
        // The passive side has it from the request, and gets none here.
        state.peer.get_or_insert(peer);
        state.answer = Some(Ok(()));
        state.wake.complete();
    }

    fn found(&self, destination: Destination, peer: Option<PeerParameters>) {
        let mut state = self.state.lock();
        state.peer = peer;
        state.destination = Some(destination).filter(|_| !state.closed);
        state.answer = Some(Ok(()));
        state.wake.complete();
    }

    /// An end: of a request that nobody has taken yet, news of an established
    /// connection, or the answer. Says whether the id is to be destroyed.
    fn ended(&self, lost: Lost, cause: Cause) -> bool {
        let (backlog, queue) = {
            let mut state = self.state.lock();
            state.ended = Some(cause);
            let queue = state.queue.clone().filter(|_| state.established);
            (state.backlog.clone(), queue)
        };
        if backlog.is_some_and(|backlog| backlog.remove(self)) {
            // The connection manager destroys it when the handler has returned.
            return true;
        }
        match queue {
            Some(queue) => queue.lost(lost),
            None => self.answer(Err(cause)),
        }
        false
    }

    /// # Safety
    ///
    /// `id` and `event` must be those of the handler's call.
    unsafe fn handle(
        &self,
        id: *mut bindings::rdma_cm_id,
        event: *mut bindings::rdma_cm_event,
    ) -> bool {
        // SAFETY: By the contract.
        let (kind, status, ud) = unsafe { ((*event).event, (*event).status, is_ud(id)) };
        let observer = self.state.lock().observer.clone();
        if let Some(observer) = observer {
            observer.heard(Event {
                number: kind,
                status,
            });
        }
        match kind {
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED => self.answer(Ok(())),
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED if ud => {
                // SAFETY: By the contract, and the event is the answer of a service.
                let (destination, peer) = unsafe {
                    (
                        Destination::from_event(event),
                        PeerParameters::from_datagram_event(event),
                    )
                };
                self.found(destination, Some(peer));
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_MULTICAST_JOIN => {
                // SAFETY: By the contract, and the event is that of a group.
                self.found(unsafe { Destination::from_event(event) }, None);
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => {
                // SAFETY: By the contract, and the event is of a connection.
                self.established(unsafe { PeerParameters::from_event(event) });
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_ERROR => {
                self.answer(Err(code(status)));
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED => {
                // SAFETY: By the contract, and the event is a rejection.
                let rejection = unsafe { Rejection::from_event(id, event) };
                return self.ended(Lost::Disconnected, Cause::Rejected(rejection));
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE => {
                let cause = match u32::try_from(status) {
                    Ok(status) if ud => Cause::NoService(status),
                    _ => Cause::Unreachable,
                };
                return self.ended(Lost::Unreachable, cause);
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_MULTICAST_ERROR => {
                return self.ended(Lost::Unreachable, code(status));
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => {
                return self.ended(Lost::DeviceRemoved, Cause::DeviceRemoved);
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE => {
                return self.ended(Lost::AddressChanged, Cause::AddressChanged);
            }
            // DISCONNECTED and TIMEWAIT_EXIT.
            _ => return self.ended(Lost::Disconnected, Cause::Disconnected),
        }
        false
    }
}

/// # Safety
///
/// Called by the connection manager with an id whose context is a `CmHandler` in an
/// `Arc` that lives until the id is destroyed, and an event of it.
// Not code of the consumer's module, which may be gone when this returns.
#[inline(never)]
unsafe extern "C" fn handler(
    id: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: By the contract.
    let cm_handler = unsafe { ArcBorrow::from_raw((*id).context.cast::<CmHandler>()) };
    // The reference of an id that is given up below goes before the call is over.
    let cm_handler: Arc<CmHandler> = cm_handler.into();
    // SAFETY: By the contract.
    c_int::from(unsafe { cm_handler.handle(id, event) })
}

/// Whether an id is one of datagrams.
///
/// # Safety
///
/// `id` must be valid.
unsafe fn is_ud(id: *const bindings::rdma_cm_id) -> bool {
    // SAFETY: By the contract; the type is constant.
    unsafe { (*id).qp_type == bindings::ib_qp_type_IB_QPT_UD }
}

/// The cause in an event's status, a negative error number.
fn code(status: c_int) -> Cause {
    match to_result(status) {
        Err(error) => Cause::Code(error),
        Ok(()) => Cause::Unreachable,
    }
}

/// An id of the connection manager with its handler's state.
///
/// # Invariants
///
/// `raw` is an id whose handler is [`handler`] and whose context is `cm_handler`,
/// owned by this object.
pub(crate) struct CmId {
    raw: NonNull<bindings::rdma_cm_id>,
    cm_handler: Arc<CmHandler>,
}

// SAFETY: The connection manager's calls may be made from any thread.
unsafe impl Send for CmId {}
// SAFETY: As above; what `&self` reads of the id is set once.
unsafe impl Sync for CmId {}

impl CmId {
    /// Creates an id for the service `S` in `namespace`.
    pub(crate) fn new<S: Sealed>(
        namespace: &Namespace,
        wake: Arc<TimedCompletion>,
        owner: &'static CStr,
    ) -> Result<Self> {
        let cm_handler = CmHandler::new(wake, None, None)?;
        // SAFETY: The namespace is alive; `cm_handler` is pinned on the heap and
        // outlives the id, see `Drop`.
        let raw = from_err_ptr(unsafe {
            bindings::__rdma_create_kernel_id(
                namespace.as_ptr(),
                Some(handler),
                ptr::from_ref(&*cm_handler).cast_mut().cast(),
                S::PORT_SPACE,
                S::QP_TYPE,
                owner.as_char_ptr(),
            )
        })?;
        // INVARIANT: As created.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            cm_handler,
        })
    }

    /// Takes the id of a connection request, which is to wait at `backlog`. May
    /// sleep.
    ///
    /// # Safety
    ///
    /// Must be called by the handler of the listener with the id and the event of
    /// a request, and the id must be given to nobody else. If the handler refuses
    /// the request, the result must be forgotten.
    pub(super) unsafe fn take_request(
        id: NonNull<bindings::rdma_cm_id>,
        event: *mut bindings::rdma_cm_event,
        backlog: Arc<dyn RequestQueue>,
        wake: Arc<TimedCompletion>,
    ) -> Result<Self> {
        // SAFETY: By the contract, the event is a request, of either kind.
        let peer = unsafe {
            match is_ud(id.as_ptr()) {
                true => PeerParameters::from_datagram_event(event),
                false => PeerParameters::from_event(event),
            }
        };
        let cm_handler = CmHandler::new(wake, Some(peer), Some(backlog))?;
        // SAFETY: By the contract, no other handler of the id runs before this
        // one returns.
        unsafe {
            (*id.as_ptr()).context = ptr::from_ref(&*cm_handler).cast_mut().cast();
            (*id.as_ptr()).event_handler = Some(handler);
        }
        // INVARIANT: As just set.
        Ok(Self {
            raw: id,
            cm_handler,
        })
    }

    /// Leaves the id to the connection manager, which destroys it when its handler
    /// returns.
    pub(super) fn forget(self) {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used any more, and never dropped.
        drop(unsafe { ptr::read(&this.cm_handler) });
    }

    pub(super) fn has_handler(&self, cm_handler: &CmHandler) -> bool {
        ptr::eq(&*self.cm_handler, cm_handler)
    }

    /// The id was taken from where it waited; what its peer said.
    pub(crate) fn taken(&self) -> PeerParameters {
        let mut state = self.cm_handler.state.lock();
        state.backlog = None;
        state.peer.unwrap_or(PeerParameters::SILENT)
    }

    /// Changes what is completed when there is something to look at.
    pub(crate) fn wait_on(&self, wake: Arc<TimedCompletion>) {
        self.cm_handler.state.lock().wake = wake;
    }

    /// What the peer said, if it did.
    pub(crate) fn peer(&self) -> PeerParameters {
        self.cm_handler
            .state
            .lock()
            .peer
            .unwrap_or(PeerParameters::SILENT)
    }

    /// Why nothing will come of the id any more, if so.
    pub(crate) fn ended(&self) -> Option<Cause> {
        self.cm_handler.state.lock().ended
    }

    /// Where datagrams go, as the last step has found.
    pub(crate) fn destination(&self) -> Option<Destination> {
        self.cm_handler.state.lock().destination.take()
    }

    /// The address of this end, once the id is bound.
    pub(crate) fn local_address(&self) -> Address {
        // SAFETY: The id is ours, and both addresses are of a family once it is bound.
        unsafe { Address::from_raw(&raw const (*self.as_ptr()).route.addr.src_addr) }
    }

    /// The address of the other end, once the id is resolved, or that of a request.
    pub(crate) fn peer_address(&self) -> Address {
        // SAFETY: As above.
        unsafe { Address::from_raw(&raw const (*self.as_ptr()).route.addr.dst_addr) }
    }

    /// The port of the device.
    ///
    /// # Safety
    ///
    /// The id must have a device.
    pub(crate) unsafe fn port(&self) -> Option<Port<'_>> {
        // SAFETY: By the contract; the number is set with the device.
        unsafe { self.device().port((*self.as_ptr()).port_num) }
    }

    /// Lets `observer` hear of all events from now on.
    pub(super) fn observe(&self, observer: Arc<dyn Observer>) {
        self.cm_handler.state.lock().observer = Some(observer);
    }

    /// Lets `queue` hear of the end of the connection.
    pub(super) fn tell<E: Endpoint>(&self, queue: Arc<QueuePair<E>>) {
        self.cm_handler.state.lock().queue = Some(queue);
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::rdma_cm_id {
        self.raw.as_ptr()
    }

    /// # Safety
    ///
    /// The id must have a device.
    pub(crate) unsafe fn device(&self) -> &Device {
        // SAFETY: By the contract; the device cannot go before the id does.
        unsafe { Device::from_raw((*self.as_ptr()).device) }
    }

    /// Creates the queue pair of the id (`rdma_create_qp`). Sleeps.
    ///
    /// # Safety
    ///
    /// The id must have a device and no queue pair, and be destroyed before the
    /// queue pair is dropped.
    // The attributes of a queue pair are large: not on the stack of the caller, too.
    #[inline(never)]
    pub(super) unsafe fn create_queue_pair<E: Endpoint>(
        &self,
        init_attr: QpInitAttr<E>,
        context: impl PinInit<E, kernel::error::Error>,
        owner: &'static CStr,
    ) -> Result<Arc<QueuePair<E>>> {
        // SAFETY: By the contract.
        if !init_attr.are_of(unsafe { self.device() }) {
            return Err(EINVAL);
        }
        let id = self.as_ptr();
        let make = |pd, attributes: &mut _| {
            // SAFETY: By the contract; the attributes are of the id's device.
            to_result(unsafe { bindings::rdma_create_qp(id, pd, attributes) })?;
            // SAFETY: `rdma_create_qp` has set it.
            NonNull::new(unsafe { (*id).qp }).ok_or(EINVAL)
        };
        // SAFETY: `make` does as it has to. The id knows the queue pair, and goes
        // before it does.
        unsafe { QueuePair::create(init_attr, context, owner, make) }
    }

    /// Begins a step with `begin`, which is told how long it may take, and waits for its answer. It
    /// does not begin when the time is over: the core would call a time of nothing a mistake.
    pub(crate) fn step(
        &self,
        stage: Stage,
        limits: WaitLimits<'_>,
        begin: impl FnOnce(Msecs) -> c_int,
    ) -> Result<(), Error> {
        let fail = |cause| Error { stage, cause };
        let left = limits.deadline.left().min(limits.limit);
        if left == Msecs::new(0) {
            return Err(fail(Cause::TimedOut(limits.deadline.span())));
        }
        let wake = {
            let mut state = self.cm_handler.state.lock();
            if let Some(cause) = state.ended {
                return Err(fail(cause));
            }
            state.answer = None;
            state.wake.clone()
        };
        to_result(begin(left)).map_err(|error| {
            // An id that has ended refuses everything: why it ended says more.
            fail(self.ended().unwrap_or(Cause::Code(error)))
        })?;
        let mine = Deadline::after(limits.limit);
        loop {
            if let Some(answer) = self.cm_handler.state.lock().answer.take() {
                return answer.map_err(fail);
            }
            if (limits.cancelled)() {
                return Err(fail(Cause::Cancelled));
            }
            let left = mine.left().min(limits.deadline.left());
            if left == Msecs::new(0) {
                let over = limits.deadline.left() == left;
                let late = if over { limits.deadline } else { mine };
                return Err(fail(Cause::TimedOut(late.span())));
            }
            // Fired or not, the loop looks again.
            let _ = wake.wait_timeout(left);
        }
    }
}

impl Drop for CmId {
    fn drop(&mut self) {
        // What a destination names of the device goes before the id lets go of it.
        let destination = {
            let mut state = self.cm_handler.state.lock();
            state.closed = true;
            state.destination.take()
        };
        drop(destination);
        // SAFETY: The id is ours. This cancels what is under way and waits for a
        // handler that is running, so `cm_handler` is not used any more.
        unsafe { bindings::rdma_destroy_id(self.raw.as_ptr()) };
        // References that the handler has would be dropped with it at the latest;
        // they go now, so that the last one is the owner's.
        let mut state = self.cm_handler.state.lock();
        state.queue = None;
        state.backlog = None;
        state.observer = None;
    }
}
