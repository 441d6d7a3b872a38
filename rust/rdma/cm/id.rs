// SPDX-License-Identifier: GPL-2.0

//! The steps of a connection, from id to connected queue pair.

use super::{
    Address,
    Cause,
    Error,
    Rejection,
    Stage, //
};
use crate::{
    bindings,
    net::Namespace,
    rdma::{
        cq::CompletionQueue,
        device::Device,
        pd::ProtectionDomain,
        qp::{
            Capacity,
            Context,
            QueuePair, //
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
    ffi::c_ulong,
    new_mutex,
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        Mutex, //
    },
};

/// One attempt to find an address. The core asks the network before it listens
/// for the answer, and looks again only when its time is over: if the answer was
/// faster, that is how long it goes unseen.
const ATTEMPT: Msecs = Msecs::new(500);

/// How long to wait, and whether to go on.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// The longest that finding the address, or the route, may take.
    pub limit: Msecs,
    /// The longest that all steps may take.
    pub total: Msecs,
    /// When that is over.
    pub deadline: Deadline,
    /// Asked whenever the caller's completion fires; `true` aborts.
    pub cancelled: &'a dyn Fn() -> bool,
}

/// Why an established connection is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// The peer disconnected, or answered our disconnection.
    Disconnected,
    /// The local address or the path to the peer changed.
    AddressChanged,
    /// The peer no longer answers.
    Unreachable,
    /// The device is going away.
    DeviceRemoved,
}

/// What the connection request tells the peer.
#[derive(Clone, Copy)]
pub struct Parameters<'a> {
    /// The consumer's own data; at most 56 bytes with InfiniBand and RoCE.
    pub private_data: &'a [u8],
    /// RDMA reads of the peer that may be outstanding; none means no read at all.
    pub responder_resources: u8,
    /// Retransmissions before the connection is lost, at most 7.
    pub retry_count: u8,
    /// Retransmissions to a peer without a receive posted; 7 is for ever.
    pub rnr_retry_count: u8,
}

/// What the handler has heard of the step that is waited for.
type Answer = Result<(), Cause>;

struct Heard<E: Context> {
    answer: Option<Answer>,
    established: bool,
    queue: Option<Arc<QueuePair<E>>>,
}

/// What the handler works on.
#[pin_data]
struct Endpoint<E: Context> {
    #[pin]
    heard: Mutex<Heard<E>>,
    wake: Arc<TimedCompletion>,
}

impl<E: Context> Endpoint<E> {
    fn answer(&self, answer: Answer) {
        self.heard.lock().answer = Some(answer);
        self.wake.complete();
    }

    fn established(&self) {
        self.heard.lock().established = true;
        self.answer(Ok(()));
    }

    /// An end of the connection: news if it was established, else the answer.
    fn ended(&self, lost: Lost, cause: Cause) {
        let queue = {
            let heard = self.heard.lock();
            heard.queue.clone().filter(|_| heard.established)
        };
        match queue {
            Some(queue) => E::lost(&queue, lost),
            None => self.answer(Err(cause)),
        }
    }
}

/// # Safety
///
/// Called by the connection manager with an id whose context is an `Endpoint<E>`
/// that lives until the id is destroyed, and an event of it.
unsafe extern "C" fn handler<E: Context>(
    id: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: By the contract.
    let (endpoint, kind, status) = unsafe {
        (
            &*(*id).context.cast::<Endpoint<E>>(),
            (*event).event,
            (*event).status,
        )
    };
    match kind {
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED
        | bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED => endpoint.answer(Ok(())),
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => endpoint.established(),
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR
        | bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_ERROR => {
            endpoint.answer(Err(code(status)));
        }
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED => {
            // SAFETY: By the contract, and the event is a rejection.
            let rejection = unsafe { Rejection::from_event(id, event) };
            endpoint.answer(Err(Cause::Rejected(rejection)));
        }
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE => {
            endpoint.ended(Lost::Unreachable, Cause::Unreachable);
        }
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR => {
            endpoint.ended(Lost::Unreachable, code(status));
        }
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => {
            endpoint.ended(Lost::DeviceRemoved, Cause::DeviceRemoved);
        }
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE => {
            endpoint.ended(Lost::AddressChanged, Cause::Unreachable);
        }
        // DISCONNECTED, TIMEWAIT_EXIT, and what the active side does not get.
        _ => endpoint.ended(Lost::Disconnected, Cause::Unreachable),
    }
    // Anything else would destroy the id under its owner.
    0
}

/// The cause in an event's status, a negative error number.
fn code(status: c_int) -> Cause {
    match to_result(status) {
        Err(error) => Cause::Code(error),
        Ok(()) => Cause::Unreachable,
    }
}

/// An id of the connection manager, not yet resolved.
///
/// # Invariants
///
/// `raw` is an id whose context is `endpoint`, owned by this object.
pub struct Id<E: Context> {
    raw: NonNull<bindings::rdma_cm_id>,
    endpoint: Arc<Endpoint<E>>,
}

// SAFETY: The connection manager's calls may be made from any thread.
unsafe impl<E: Context> Send for Id<E> {}
// SAFETY: As above; `&self` only reads the device, which is set once.
unsafe impl<E: Context> Sync for Id<E> {}

impl<E: Context> Id<E> {
    /// Creates an id for a reliable connection in `namespace`, which it holds.
    /// `wake` is completed whenever there is something to look at; `owner` is
    /// what `rdma res show cm_id` names. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(
        namespace: &Namespace,
        wake: Arc<TimedCompletion>,
        owner: &'static CStr,
    ) -> Result<Self> {
        let endpoint = Arc::pin_init(
            pin_init!(Endpoint::<E> {
                heard <- new_mutex!(Heard {
                    answer: None,
                    established: false,
                    queue: None,
                }, "rrdma::cm::Endpoint"),
                wake,
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: The namespace is alive; `endpoint` is pinned on the heap and
        // outlives the id, see `Drop`.
        let raw = from_err_ptr(unsafe {
            bindings::__rdma_create_kernel_id(
                namespace.as_ptr(),
                Some(handler::<E>),
                ptr::from_ref(&*endpoint).cast_mut().cast(),
                bindings::rdma_ucm_port_space_RDMA_PS_TCP,
                bindings::ib_qp_type_IB_QPT_RC,
                owner.as_char_ptr(),
            )
        })?;
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            endpoint,
        })
    }

    /// Finds the local device and the link address of `to`, from `from` if given
    /// (`rdma_resolve_addr`). Sleeps.
    ///
    /// # Errors
    ///
    /// Of [`Stage::Address`]; `ENODEV` if no RDMA device is on the way.
    pub fn resolve(
        self,
        from: Option<&Address>,
        to: &Address,
        patience: Patience<'_>,
    ) -> Result<Addressed<E>, Error> {
        let from = from.map_or(ptr::null_mut(), Address::as_raw);
        let end = Deadline::after(patience.limit).min(patience.deadline);
        loop {
            let limit = end.left().min(ATTEMPT);
            // The core answers in time by itself, so its answer is waited for.
            let longer = Patience {
                limit: Msecs::new(limit.get().saturating_add(ATTEMPT.get())),
                ..patience
            };
            let answer = self.step(Stage::Address, longer, || {
                // SAFETY: The id is ours; the addresses are valid, and only read.
                unsafe {
                    bindings::rdma_resolve_addr(
                        self.raw.as_ptr(),
                        from,
                        to.as_raw(),
                        limit.get() as c_ulong,
                    )
                }
            });
            match answer {
                // INVARIANT: Resolved, so it has a device.
                Ok(()) => return Ok(Addressed(self)),
                Err(error) if !error.cause.is_core_timeout() => return Err(error),
                Err(error) if end.left() == Msecs::new(0) => {
                    return Err(Error {
                        cause: Cause::TimedOut(patience.limit.min(patience.total)),
                        ..error
                    })
                }
                Err(_) => {}
            }
        }
    }

    /// Begins a step with `begin` and waits for its answer.
    fn step(
        &self,
        stage: Stage,
        patience: Patience<'_>,
        begin: impl FnOnce() -> c_int,
    ) -> Result<(), Error> {
        let fail = |cause| Error { stage, cause };
        self.endpoint.heard.lock().answer = None;
        to_result(begin()).map_err(|error| fail(Cause::Code(error)))?;
        let mine = Deadline::after(patience.limit);
        loop {
            if let Some(answer) = self.endpoint.heard.lock().answer.take() {
                return answer.map_err(fail);
            }
            if (patience.cancelled)() {
                return Err(fail(Cause::Cancelled));
            }
            let left = mine.left().min(patience.deadline.left());
            if left == Msecs::new(0) {
                let over = patience.deadline.left() == left;
                let limit = if over { patience.total } else { patience.limit };
                return Err(fail(Cause::TimedOut(limit)));
            }
            // Fired or not, the loop looks again.
            let _ = self.endpoint.wake.wait_timeout(left);
        }
    }
}

impl<E: Context> Drop for Id<E> {
    fn drop(&mut self) {
        // SAFETY: The id is ours. This cancels what is under way and waits for a
        // handler that is running, so `endpoint` is not used any more.
        unsafe { bindings::rdma_destroy_id(self.raw.as_ptr()) };
        // A reference that the endpoint has would keep the queue pair for ever
        // only if the queue pair had the endpoint, which it has not; but it goes
        // now, so that the last reference is the owner's.
        self.endpoint.heard.lock().queue = None;
    }
}

/// An id that has found its device.
///
/// # Invariants
///
/// The id's device is set, and cannot go before the id does.
pub struct Addressed<E: Context>(Id<E>);

impl<E: Context> Addressed<E> {
    /// The local device that the connection will use.
    pub fn device(&self) -> &Device {
        // SAFETY: By the type invariant.
        unsafe { Device::from_raw((*self.0.raw.as_ptr()).device) }
    }

    /// Sets the IP type of service, or InfiniBand service level, of the
    /// connection (`rdma_set_service_type`).
    pub fn set_service_type(&self, tos: u8) {
        // SAFETY: The id is ours.
        unsafe { bindings::rdma_set_service_type(self.0.raw.as_ptr(), tos.into()) };
    }

    /// Creates the queue pair (`rdma_create_qp`). `owner` is what `rdma res show
    /// qp` names. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `pd` or `cq` are of another device, or for more capacity than
    /// the device has; `ENOMEM`.
    pub fn create_queue_pair(
        self,
        pd: Arc<ProtectionDomain>,
        cq: Arc<CompletionQueue>,
        capacity: Capacity,
        context: impl PinInit<E, kernel::error::Error>,
        owner: &'static CStr,
    ) -> Result<Prepared<E>> {
        if **pd.device() != *self.device() || **cq.device() != *self.device() {
            return Err(EINVAL);
        }
        // SAFETY: The address is resolved to the device of `pd` and `cq`; the id
        // is consumed, so it has no other queue pair. `Prepared` and `Connected`
        // destroy the id before they drop the queue pair.
        let queue =
            unsafe { QueuePair::create(self.0.raw.as_ptr(), pd, cq, capacity, context, owner)? };
        Ok(Prepared { id: self.0, queue })
    }
}

/// An id with a queue pair, not yet connected; receives may be posted.
pub struct Prepared<E: Context> {
    // Dropped first: the id knows the queue pair.
    id: Id<E>,
    queue: Arc<QueuePair<E>>,
}

impl<E: Context> Prepared<E> {
    /// The queue pair.
    pub fn queue_pair(&self) -> &Arc<QueuePair<E>> {
        &self.queue
    }

    /// Finds the route and connects (`rdma_resolve_route`, `rdma_connect`).
    /// Sleeps. The peer may send from here on.
    ///
    /// # Errors
    ///
    /// Of [`Stage::Route`] and [`Stage::Connect`].
    pub fn connect(
        self,
        parameters: Parameters<'_>,
        patience: Patience<'_>,
    ) -> Result<Connected<E>, Error> {
        let raw = self.id.raw.as_ptr();
        let limit = patience.deadline.left().min(patience.limit);
        self.id.step(Stage::Route, patience, || {
            // SAFETY: The id is ours and its address is resolved.
            unsafe { bindings::rdma_resolve_route(raw, limit.get() as c_ulong) }
        })?;
        let mut request = bindings::rdma_conn_param {
            private_data: parameters.private_data.as_ptr().cast(),
            private_data_len: parameters
                .private_data
                .len()
                .try_into()
                .map_err(|_| Error {
                    stage: Stage::Connect,
                    cause: Cause::Code(EINVAL),
                })?,
            responder_resources: parameters.responder_resources,
            flow_control: 1,
            retry_count: parameters.retry_count,
            rnr_retry_count: parameters.rnr_retry_count,
            qp_num: self.queue.number(),
            ..pin_init::zeroed()
        };
        self.id.endpoint.heard.lock().queue = Some(self.queue.clone());
        // The peer's answer is limited by the deadline only: the connection
        // manager repeats the request by itself.
        let patience = Patience {
            limit: patience.deadline.left(),
            ..patience
        };
        self.id.step(Stage::Connect, patience, || {
            // SAFETY: The id is ours and its route is resolved; the private data
            // is copied before the call returns.
            unsafe { bindings::rdma_connect(raw, &mut request) }
        })?;
        Ok(Connected(self))
    }
}

/// An established connection; dropping it disconnects and drains.
pub struct Connected<E: Context>(Prepared<E>);

impl<E: Context> Connected<E> {
    /// The queue pair.
    pub fn queue_pair(&self) -> &Arc<QueuePair<E>> {
        &self.0.queue
    }

    /// Tells the peer, moves the queue pair to its error state, and waits until
    /// everything that was posted has completed (`rdma_disconnect`,
    /// `ib_drain_qp`). Sleeps; not from a completion or a connection event.
    pub fn disconnect(&self) {
        self.0.queue.close();
        // SAFETY: The id is ours. An error means that it was not connected any
        // more, which is what is wanted.
        unsafe { bindings::rdma_disconnect(self.0.id.raw.as_ptr()) };
        self.0.queue.drain();
    }
}

impl<E: Context> Drop for Connected<E> {
    fn drop(&mut self) {
        self.disconnect();
    }
}
