// SPDX-License-Identifier: GPL-2.0

//! A CM ID and the state of its event handler.
//!
//! No code here depends on types of the consumer. The event handler is therefore code of this
//! module, which outlives the consumer's module.
//!
//! That matters for a CM ID that ends while it waits in a [`RequestQueue`]: its own handler gives
//! it up, and the consumer's module cannot wait for that handler. From then on the handler does not
//! sleep, so the exit of this module waits for it with `synchronize_rcu_tasks`.

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
            DeviceRef,
            Port,
            RemovalWatch, //
        },
        qp::{
            AckTimeout,
            QpInitAttr,
            QueuePair,
            RnrTimer,
            Sealed, //
        }, //
    },
    sync::{
        drop_later,
        new_mutex,
        Deadline,
        DropsLater,
        ModuleUse,
        Msecs,
        SleepingDrop,
        TimedCompletion, //
    },
};
use core::{
    ffi::c_int,
    mem::ManuallyDrop,
    ops::Deref,
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
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        ArcBorrow,
        Mutex, //
    },
};

/// Longest time between two looks at what ends a step. [`WaitLimits::cancelled`] may depend on the time.
const RECHECK: Msecs = Msecs::from_secs(1);

/// A queue pair whose connection can end, whatever the type of its context.
pub(super) trait OnDisconnect: Send + Sync {
    fn lost(&self, cause: Lost);
}

impl<E: Endpoint> OnDisconnect for QueuePair<E> {
    fn lost(&self, cause: Lost) {
        E::lost(self, cause);
    }
}

/// A queue of CM IDs of connection requests that the consumer has not taken yet.
pub(super) trait RequestQueue: Send + Sync {
    /// Removes the CM ID of `cm_handler` and leaves it to the connection manager; returns whether
    /// it was in the queue. Called from the CM ID's event handler.
    fn remove(&self, cm_handler: &CmHandler) -> bool;
}

/// The result of the current step.
type Answer = Result<(), Cause>;

/// State that the event handler shares with the owner of the CM ID.
struct CmState {
    answer: Option<Answer>,
    /// Reason why no further event is to be expected; set once the CM ID is of no use any more.
    ended: Option<Cause>,
    established: bool,
    /// The peer's parameters, from its request or its reply.
    peer: Option<PeerParameters>,
    /// Destination of datagrams: the result of a service query or a multicast join.
    destination: Option<Destination>,
    /// The CM ID is being destroyed: `destination` may not be set, as it refers to the device.
    closed: bool,
    /// Notified when the connection ends.
    queue: Option<Arc<dyn OnDisconnect>>,
    /// The queue that the CM ID of a request waits in.
    backlog: Option<Arc<dyn RequestQueue>>,
    /// Called for each event. Set on the active side only: the consumer's module cannot wait for
    /// the handler of a CM ID that its backlog gives up, so that handler must not call the module.
    observer: Option<(Arc<dyn Observer>, ModuleUse)>,
    /// Set with the queue pair, whose device is not removed before the queue pair is dropped.
    removal: Option<RemovalWatch>,
    wake: Arc<TimedCompletion>,
}

impl CmState {
    /// Returns the cause if no event is to be expected any more.
    ///
    /// The connection manager reports the removal of a device when the clients of this crate have dropped
    /// what they have on the device, so a step that has a queue pair must not wait for that event.
    fn ended(&self) -> Option<Cause> {
        let removed = self.removal.as_ref().is_some_and(RemovalWatch::is_removing);
        self.ended.or(removed.then_some(Cause::DeviceRemoved))
    }
}

/// The context of the event handler.
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
                    removal: None,
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
        // Set on the passive side, from the request: this event has no parameters there.
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

    /// Handles an event that ends the CM ID. Gives it up if it still waits in its backlog, notifies
    /// the queue pair if the connection was established, and fails the current step otherwise.
    /// Returns whether the connection manager must destroy the CM ID.
    fn ended(&self, lost: Lost, cause: Cause) -> bool {
        let (backlog, queue) = {
            let mut state = self.state.lock();
            state.ended = Some(cause);
            let queue = state.queue.clone().filter(|_| state.established);
            (state.backlog.clone(), queue)
        };
        if backlog.is_some_and(|backlog| backlog.remove(self)) {
            // The connection manager destroys the CM ID when its handler returns non-zero.
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
    /// `id` and `event` must be the arguments of the event handler's call.
    unsafe fn handle(
        &self,
        id: *mut bindings::rdma_cm_id,
        event: *mut bindings::rdma_cm_event,
    ) -> bool {
        // SAFETY: By the safety requirements, `id` and `event` are valid.
        let (kind, status, ud) = unsafe { ((*event).event, (*event).status, is_ud(id)) };
        let observer = self
            .state
            .lock()
            .observer
            .as_ref()
            .map(|(observer, _)| observer.clone());
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
                // SAFETY: `event` is valid; for a CM ID of datagrams, it has datagram parameters.
                let (destination, peer) = unsafe {
                    (
                        Destination::from_event(event),
                        PeerParameters::from_datagram_event(event),
                    )
                };
                self.found(destination, Some(peer));
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_MULTICAST_JOIN => {
                // SAFETY: `event` is valid; a multicast event has datagram parameters.
                self.found(unsafe { Destination::from_event(event) }, None);
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => {
                // SAFETY: `event` is valid; for a connected service, it has connection parameters.
                self.established(unsafe { PeerParameters::from_event(event) });
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_ERROR => {
                self.answer(Err(code(status)));
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED => {
                // SAFETY: `id` and `event` are valid, and the event is a rejection.
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
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED if status == 0 => {
                // SAFETY: `id` is valid, and a connection has a device.
                let lost = match unsafe { is_iwarp(id) } {
                    true => Lost::Closed,
                    false => Lost::Disconnected,
                };
                return self.ended(lost, Cause::Disconnected);
            }
            // RDMA_CM_EVENT_DISCONNECTED without an answer of the peer, and
            // RDMA_CM_EVENT_TIMEWAIT_EXIT, which follows.
            _ => return self.ended(Lost::Unreachable, Cause::Disconnected),
        }
        false
    }
}

/// The event handler of a `CmId` (`rdma_cm_event_handler`). Returns non-zero to have the CM ID
/// destroyed.
///
/// # Safety
///
/// The caller is the connection manager. The context of `id` must be a `CmHandler` in an `Arc` that
/// lives until `id` is destroyed, and `event` an event of `id`.
// Not inlined into the consumer's module, which may be unloaded before this returns.
#[inline(never)]
unsafe extern "C" fn handler(
    id: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: By the safety requirements, the context is a `CmHandler` in a live `Arc`.
    let cm_handler = unsafe { ArcBorrow::from_raw((*id).context.cast::<CmHandler>()) };
    // A reference of our own: giving up the CM ID below drops the reference of its owner.
    let cm_handler: Arc<CmHandler> = cm_handler.into();
    // SAFETY: `id` and `event` are the arguments of this call.
    c_int::from(unsafe { cm_handler.handle(id, event) })
}

/// Returns whether a CM ID is for datagrams.
///
/// # Safety
///
/// `id` must be valid.
unsafe fn is_ud(id: *const bindings::rdma_cm_id) -> bool {
    // SAFETY: `id` is valid by the safety requirements, and its type never changes.
    unsafe { (*id).qp_type == bindings::ib_qp_type_IB_QPT_UD }
}

/// Returns whether a CM ID is on an iWARP device.
///
/// # Safety
///
/// `id` must be valid and have a device.
unsafe fn is_iwarp(id: *const bindings::rdma_cm_id) -> bool {
    // SAFETY: By the safety requirements, `id` is valid and has a device, which stays while an event is handled.
    unsafe { Device::from_raw((*id).device).is_rnic() }
}

/// Converts the status of an event, a negative error number, to a cause.
fn code(status: c_int) -> Cause {
    match to_result(status) {
        Err(error) => Cause::Code(error),
        Ok(()) => Cause::Unreachable,
    }
}

type Handler =
    unsafe extern "C" fn(*mut bindings::rdma_cm_id, *mut bindings::rdma_cm_event) -> c_int;

/// Creates a CM ID for the transport service `S` in `namespace` (`__rdma_create_kernel_id`). May
/// sleep.
///
/// # Safety
///
/// `handler` must accept `context` as the context of the CM ID, until the CM ID is destroyed.
pub(super) unsafe fn create<S: Sealed, C>(
    namespace: &Namespace,
    handler: Handler,
    context: *const C,
    owner: &'static CStr,
) -> Result<NonNull<bindings::rdma_cm_id>> {
    // SAFETY: The namespace is alive. The rest are the safety requirements of this function.
    let raw = from_err_ptr(unsafe {
        bindings::__rdma_create_kernel_id(
            namespace.as_ptr(),
            Some(handler),
            context.cast_mut().cast(),
            S::PORT_SPACE,
            S::QP_TYPE,
            owner.as_char_ptr(),
        )
    })?;
    NonNull::new(raw).ok_or(ENOMEM)
}

/// A CM ID with the state of its event handler (`struct rdma_cm_id`).
///
/// # Invariants
///
/// `raw` is a valid CM ID that this object owns. Its event handler is [`handler`] and its context
/// points to `cm_handler`.
pub(crate) struct CmId {
    raw: NonNull<bindings::rdma_cm_id>,
    cm_handler: Arc<CmHandler>,
}

// SAFETY: The functions of the connection manager may be called from any thread.
unsafe impl Send for CmId {}
// SAFETY: The functions of the connection manager may be called from any thread, and the fields
// that `&self` methods read are set once.
unsafe impl Sync for CmId {}

impl CmId {
    /// Creates a CM ID for the transport service `S` in `namespace` (`__rdma_create_kernel_id`).
    /// May sleep.
    pub(crate) fn new<S: Sealed>(
        namespace: &Namespace,
        wake: Arc<TimedCompletion>,
        owner: &'static CStr,
    ) -> Result<Self> {
        let cm_handler = CmHandler::new(wake, None, None)?;
        // SAFETY: The `Arc` pins `cm_handler`, and `drop` destroys the CM ID before it drops the
        // `Arc`.
        let raw = unsafe { create::<S, _>(namespace, handler, Arc::as_ptr(&cm_handler), owner)? };
        // INVARIANT: Created with this handler and this context; nobody else has it.
        Ok(Self { raw, cm_handler })
    }

    /// Takes ownership of the CM ID of a connection request, which will wait in `backlog`. May
    /// sleep.
    ///
    /// # Safety
    ///
    /// The caller must be the listener's event handler, with the arguments of a
    /// `RDMA_CM_EVENT_CONNECT_REQUEST`, and must give `id` to nobody else. If the handler then
    /// returns non-zero, it must call [`forget`](Self::forget) on the result.
    pub(super) unsafe fn take_request(
        id: NonNull<bindings::rdma_cm_id>,
        event: *mut bindings::rdma_cm_event,
        backlog: Arc<dyn RequestQueue>,
        wake: Arc<TimedCompletion>,
    ) -> Result<Self> {
        // SAFETY: The event is a request. The type of `id` says which parameters it has.
        let peer = unsafe {
            match is_ud(id.as_ptr()) {
                true => PeerParameters::from_datagram_event(event),
                false => PeerParameters::from_event(event),
            }
        };
        let cm_handler = CmHandler::new(wake, Some(peer), Some(backlog))?;
        // SAFETY: `id` is valid. Its handler mutex is held by the caller, so no other handler of
        // `id` runs before this one returns.
        unsafe {
            (*id.as_ptr()).context = Arc::as_ptr(&cm_handler).cast_mut().cast();
            (*id.as_ptr()).event_handler = Some(handler);
        }
        // INVARIANT: Handler and context were just set, and the caller gives up `id`.
        Ok(Self {
            raw: id,
            cm_handler,
        })
    }

    /// Leaves the CM ID to the connection manager. To be followed by a non-zero return value of its
    /// event handler, which makes the connection manager destroy it.
    pub(super) fn forget(self) {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped and not used after this, so the field is read once.
        drop(unsafe { ptr::read(&this.cm_handler) });
    }

    pub(super) fn has_handler(&self, cm_handler: &CmHandler) -> bool {
        ptr::eq(&*self.cm_handler, cm_handler)
    }

    /// Marks the CM ID as taken from its backlog and returns the parameters of the peer's request.
    pub(crate) fn taken(&self) -> PeerParameters {
        let mut state = self.cm_handler.state.lock();
        state.backlog = None;
        state.peer.unwrap_or(PeerParameters::SILENT)
    }

    /// Replaces the completion that each event completes.
    pub(crate) fn wait_on(&self, wake: Arc<TimedCompletion>) {
        self.cm_handler.state.lock().wake = wake;
    }

    /// Returns the parameters of the peer; those of [`PeerParameters::SILENT`] if it sent none.
    pub(crate) fn peer(&self) -> PeerParameters {
        self.cm_handler
            .state
            .lock()
            .peer
            .unwrap_or(PeerParameters::SILENT)
    }

    /// Returns the cause if an event has ended the CM ID.
    pub(crate) fn ended(&self) -> Option<Cause> {
        self.cm_handler.state.lock().ended()
    }

    /// Has a removal of the queue pair's device end the current step and each later one.
    fn watch_removal(&self, device: DeviceRef) -> Result {
        let wake = self.cm_handler.state.lock().wake.clone();
        let removal = RemovalWatch::new(device, wake)?;
        self.cm_handler.state.lock().removal = Some(removal);
        Ok(())
    }

    /// Takes the destination that the last step found.
    pub(crate) fn destination(&self) -> Option<Destination> {
        self.cm_handler.state.lock().destination.take()
    }

    /// Returns the local address. Meaningful once the CM ID is bound.
    pub(crate) fn local_address(&self) -> Address {
        // SAFETY: By the type invariant, `raw` is valid. Binding sets the family of both addresses.
        unsafe { Address::from_raw(&raw const (*self.as_ptr()).route.addr.src_addr) }
    }

    /// Returns the peer's address: the one that was resolved, or the source of a request.
    pub(crate) fn peer_address(&self) -> Address {
        // SAFETY: By the type invariant, `raw` is valid. Binding sets the family of both addresses.
        unsafe { Address::from_raw(&raw const (*self.as_ptr()).route.addr.dst_addr) }
    }

    /// Returns the address that a reply to the request goes to.
    pub(crate) fn reply_address(&self) -> [u8; 16] {
        let mut address = [0; 16];
        // SAFETY: By the type invariant, `raw` is valid. The route of a request does not change. `address` has
        // room for 16 bytes.
        unsafe { bindings::reply_address(self.as_ptr(), address.as_mut_ptr()) };
        address
    }

    /// Calls `observer` for each event from now on.
    pub(super) fn observe(&self, observer: Arc<dyn Observer>, module: ModuleUse) {
        self.cm_handler.state.lock().observer = Some((observer, module));
    }

    /// Notifies `queue` when the connection ends.
    pub(super) fn tell(&self, queue: Arc<dyn OnDisconnect>) {
        self.cm_handler.state.lock().queue = Some(queue);
    }

    /// Sets the acknowledgement time-out, see [`Addressed::set_ack_timeout`].
    ///
    /// [`Addressed::set_ack_timeout`]: super::Addressed::set_ack_timeout
    pub(super) fn set_ack_timeout(&self, timeout: AckTimeout) -> Result {
        // SAFETY: By the type invariant, the CM ID is valid.
        to_result(unsafe { bindings::rdma_set_ack_timeout(self.as_ptr(), timeout.get()) })
    }

    /// Limits the acknowledgement time-out of a request, see [`Incoming::limit_ack_timeout`].
    ///
    /// [`Incoming::limit_ack_timeout`]: super::Incoming::limit_ack_timeout
    pub(super) fn limit_ack_timeout(&self, most: AckTimeout) -> Result {
        // SAFETY: By the type invariant, the CM ID is valid. The connection manager has set the path of a request
        // before its event, and iWARP has none.
        let lifetime = unsafe {
            let path = (*self.as_ptr()).route.path_rec;
            match path.is_null() {
                true => return Ok(()),
                false => (*path).packet_life_time,
            }
        };
        // cm_ack_timeout() makes a time-out of the lifetime that is at least twice as long.
        match lifetime < most.get() {
            true => Ok(()),
            false => self.set_ack_timeout(most),
        }
    }

    /// Sets the minimum RNR timer, see [`Addressed::set_min_rnr_timer`].
    ///
    /// [`Addressed::set_min_rnr_timer`]: super::Addressed::set_min_rnr_timer
    pub(super) fn set_min_rnr_timer(&self, timer: RnrTimer) -> Result {
        // SAFETY: By the type invariant, the CM ID is valid.
        to_result(unsafe { bindings::rdma_set_min_rnr_timer(self.as_ptr(), timer.get()) })
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::rdma_cm_id {
        self.raw.as_ptr()
    }

    pub(super) fn raw(&self) -> NonNull<bindings::rdma_cm_id> {
        self.raw
    }

    /// Performs a step: calls `begin` with its time-out, then waits for its result. Sleeps.
    ///
    /// Fails without calling `begin` if no time is left, because `rdma_resolve_route` returns
    /// `EINVAL` for a time-out of 0.
    pub(crate) fn step(
        &self,
        stage: Stage,
        limits: WaitLimits<'_>,
        begin: impl FnOnce(Msecs) -> c_int,
    ) -> Result<(), Error> {
        self.begin_step(stage, limits, begin)?;
        self.finish_step(stage, limits)
    }

    /// Begins a step: calls `begin` with its time-out. [`finish_step`](Self::finish_step) waits for
    /// its result. Meanwhile the caller may begin steps of other CM IDs. May sleep.
    pub(crate) fn begin_step(
        &self,
        stage: Stage,
        limits: WaitLimits<'_>,
        begin: impl FnOnce(Msecs) -> c_int,
    ) -> Result<(), Error> {
        let limit = self.enter_step(stage, limits)?;
        self.step_begun(stage, begin(limit))
    }

    /// Prepares for the answer to a step, and returns the time-out of the step. May sleep.
    fn enter_step(&self, stage: Stage, limits: WaitLimits<'_>) -> Result<Msecs, Error> {
        let fail = |cause| Error { stage, cause };
        let left = limits.deadline.left().min(limits.limit);
        if left == Msecs::ZERO {
            return Err(fail(Cause::TimedOut(limits.deadline.span())));
        }
        let mut state = self.cm_handler.state.lock();
        if let Some(cause) = state.ended {
            return Err(fail(cause));
        }
        state.answer = None;
        Ok(left)
    }

    /// Converts the result of the call that begins a step. May sleep.
    fn step_begun(&self, stage: Stage, errno: c_int) -> Result<(), Error> {
        to_result(errno).map_err(|error| {
            // Once the CM ID has ended, every call fails: the reason for its end is more specific.
            let cause = self.ended().unwrap_or(Cause::Code(error));
            Error { stage, cause }
        })
    }

    /// Waits for the result of the step that was begun. Sleeps.
    pub(crate) fn finish_step(&self, stage: Stage, limits: WaitLimits<'_>) -> Result<(), Error> {
        let fail = |cause| Error { stage, cause };
        let wake = self.cm_handler.state.lock().wake.clone();
        let mine = Deadline::after(limits.limit);
        loop {
            let (answer, ended) = {
                let mut state = self.cm_handler.state.lock();
                (state.answer.take(), state.ended())
            };
            if let Some(answer) = answer {
                return answer.map_err(fail);
            }
            if (limits.cancelled)() {
                return Err(fail(Cause::Cancelled));
            }
            if let Some(cause) = ended {
                return Err(fail(cause));
            }
            let left = mine.left().min(limits.deadline.left());
            if left == Msecs::ZERO {
                let over = limits.deadline.left() == left;
                let late = if over { limits.deadline } else { mine };
                return Err(fail(Cause::TimedOut(late.span())));
            }
            // The loop checks everything again, whether the wait timed out or not.
            if wake.wait_interruptible_timeout(left.min(RECHECK)).is_err() {
                return Err(fail(Cause::Interrupted));
            }
        }
    }
}

impl Drop for CmId {
    fn drop(&mut self) {
        drop(SleepingDrop::new(OwnedCmId {
            raw: self.raw,
            cm_handler: self.cm_handler.clone(),
        }));
    }
}

/// A CM ID that is to be destroyed. Dropping this destroys it, which sleeps.
///
/// # Invariants
///
/// Those of [`CmId`].
struct OwnedCmId {
    raw: NonNull<bindings::rdma_cm_id>,
    cm_handler: Arc<CmHandler>,
}

// SAFETY: The functions of the connection manager may be called from any thread.
unsafe impl Send for OwnedCmId {}

impl Drop for OwnedCmId {
    fn drop(&mut self) {
        // Drop `destination` first: it refers to the device, which the CM ID then releases.
        let destination = {
            let mut state = self.cm_handler.state.lock();
            state.closed = true;
            state.destination.take()
        };
        drop(destination);
        // SAFETY: By the type invariant, this object owns the CM ID, and is not used afterwards. The call cancels
        // pending operations and waits for a running handler, so nobody uses `cm_handler` afterwards.
        unsafe { bindings::rdma_destroy_id(self.raw.as_ptr()) };
        // Dropped now, so that the owner of the queue pair holds the last reference to it.
        let removal = {
            let mut state = self.cm_handler.state.lock();
            state.queue = None;
            state.backlog = None;
            state.observer = None;
            state.removal.take()
        };
        drop(removal);
    }
}

impl DropsLater for OwnedCmId {
    #[inline(never)]
    fn drop_later(self) {
        drop_later("CM ID", self);
    }
}

/// A CM ID with a device.
///
/// # Invariants
///
/// The CM ID has a device, which stays registered until the CM ID is destroyed.
pub(crate) struct BoundId(CmId);

impl Deref for BoundId {
    type Target = CmId;

    fn deref(&self) -> &CmId {
        &self.0
    }
}

impl BoundId {
    /// # Safety
    ///
    /// The CM ID must have a device.
    pub(super) unsafe fn new(id: CmId) -> Self {
        // INVARIANT: By the safety requirements. The connection manager's client keeps the device
        // registered until the CM ID is destroyed.
        Self(id)
    }

    /// Returns the device.
    pub(crate) fn device(&self) -> &Device {
        // SAFETY: By the type invariant, the CM ID has a device, which is registered.
        unsafe { Device::from_raw((*self.as_ptr()).device) }
    }

    /// Returns the port of the device; `None` if the device has no port of that number.
    pub(crate) fn port(&self) -> Option<Port<'_>> {
        // SAFETY: By the type invariant, the CM ID has a device. Its port number is set with it.
        self.device().port(unsafe { (*self.as_ptr()).port_num })
    }

    /// Creates the queue pair of the CM ID (`rdma_create_qp`). Sleeps.
    ///
    /// # Safety
    ///
    /// The CM ID must have no queue pair. It must be destroyed before the result is dropped.
    // Not inlined: the attributes of a queue pair would take a large part of the caller's stack
    // frame.
    #[inline(never)]
    pub(super) unsafe fn create_queue_pair<E: Endpoint>(
        &self,
        init_attr: QpInitAttr<E>,
        context: impl PinInit<E, kernel::error::Error>,
        owner: &'static CStr,
    ) -> Result<Arc<QueuePair<E>>> {
        if !init_attr.are_of(self.device()) {
            return Err(EINVAL);
        }
        self.watch_removal(init_attr.device().clone())?;
        let id = self.as_ptr();
        let make = |pd, attributes: &mut _| {
            // SAFETY: The CM ID is valid and has a device, to which the domain belongs.
            to_result(unsafe { bindings::rdma_create_qp(id, pd, attributes) })?;
            // SAFETY: The CM ID is valid, and `rdma_create_qp` has set its queue pair.
            NonNull::new(unsafe { (*id).qp }).ok_or(EINVAL)
        };
        // SAFETY: `make` creates a queue pair with the attributes that it is given. Only the CM ID
        // knows it besides the result, and the caller destroys the CM ID first.
        unsafe { QueuePair::create(init_attr, context, owner, make) }
    }
}
