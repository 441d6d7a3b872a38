// SPDX-License-Identifier: GPL-2.0

//! The steps of the active side, from a CM ID to a connected queue pair.

use super::{
    cm_id::{
        BoundId,
        CmId,
        OnDisconnect, //
    },
    listener::lasting_name,
    peer::Message,
    Address,
    Cause,
    Connected,
    Endpoint,
    Error,
    Observer,
    Parameters,
    RdAtomicLimits,
    Stage,
    WaitLimits, //
};
use crate::{
    bindings,
    net::Namespace,
    rdma::{
        device::{
            port::Protocol,
            Device, //
        },
        qp::{
            AckTimeout,
            OwnedQp,
            QpInitAttr,
            QueuePair,
            Reliable,
            RnrTimer,
            Ud, //
        },
    },
    sync::{
        Deadline,
        ModuleUse,
        Msecs,
        TimedCompletion,
        UseKind, //
    },
};
use core::{
    marker::PhantomData,
    panic::Location,
    ptr, //
};
use kernel::{
    error::to_result,
    ffi::c_ulong,
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// Time-out of one `rdma_resolve_addr` call, which `resolve` repeats until its own deadline.
///
/// The core sends the ARP or ND request before it queues its own (`rdma_resolve_ip`). A reply that
/// arrives in between is noticed at the time-out only, so the time-out is short.
const ATTEMPT: Msecs = Msecs::new(500);

/// A CM ID without a resolved address: the first step of the active side.
pub struct Id<E: Endpoint> {
    id: CmId,
    _endpoint: PhantomData<fn(E)>,
}

impl<E: Endpoint> Id<E> {
    /// Creates a CM ID in the network namespace `namespace` and takes a reference to the namespace
    /// (`__rdma_create_kernel_id`). May sleep.
    ///
    /// `wake` is completed on each event of the CM ID. `owner` is the name that
    /// `rdma res show cm_id` prints.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(
        namespace: &Namespace,
        wake: Arc<TimedCompletion>,
        owner: &'static CStr,
    ) -> Result<Self> {
        Ok(Self {
            id: CmId::new::<E::QpType>(namespace, wake, lasting_name(owner)?)?,
            _endpoint: PhantomData,
        })
    }

    /// Calls `observer` for each event from now on, until the CM ID is destroyed; an earlier observer is
    /// replaced. Dropping this object, or the connection made from it, destroys the CM ID. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[track_caller]
    pub fn observe(&self, observer: Arc<dyn Observer>) -> Result {
        let module = ModuleUse::new(UseKind::CmObserver, Location::caller())?;
        self.id.observe(observer, module);
        Ok(())
    }

    /// Allows [`resolve`](Self::resolve) to bind to a source port of other CM IDs that allow it
    /// too, unless one of them listens (`rdma_set_reuseaddr`). Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a CM ID that listens; one of this type never does.
    pub fn reuse_address(&self) -> Result {
        // SAFETY: By the invariants of `CmId`, the CM ID is valid.
        to_result(unsafe { bindings::rdma_set_reuseaddr(self.id.as_ptr(), 1) })
    }

    /// Resolves `to` to a local device and a link address, from the source address `from` if given
    /// (`rdma_resolve_addr`). Sleeps.
    ///
    /// # Errors
    ///
    /// [`Stage::Address`]; its cause is `ENODEV` if no RDMA device is on the route.
    pub fn resolve(
        self,
        from: Option<&Address>,
        to: &Address,
        limits: WaitLimits<'_>,
    ) -> Result<Addressed<E>, Error> {
        let id = resolve(self.id, from, to, limits)?;
        Ok(Addressed {
            id,
            route_begun: false,
            _endpoint: self._endpoint,
        })
    }
}

/// Creates a CM ID for datagrams and resolves its address. Fails if the device has no datagrams.
/// Sleeps.
pub(crate) fn resolve_for_datagrams(
    namespace: &Namespace,
    from: Option<&Address>,
    to: &Address,
    wake: Arc<TimedCompletion>,
    owner: &'static CStr,
    limits: WaitLimits<'_>,
) -> Result<BoundId, Error> {
    let stage = Stage::Address;
    let id = lasting_name(owner)
        .and_then(|owner| CmId::new::<Ud>(namespace, wake, owner))
        .map_err(|error| stage.failed(error))?;
    let id = resolve(id, from, to, limits)?;
    // On an iWARP port, rdma_connect() would send a connection request.
    if id
        .port()
        .is_some_and(|port| port.protocol() == Protocol::Iwarp)
    {
        let cause = Cause::Lacks(id.device().name(), "datagrams");
        return Err(Error { stage, cause });
    }
    Ok(id)
}

/// Resolves the address of a CM ID, which has a device afterwards. Sleeps.
fn resolve(
    id: CmId,
    from: Option<&Address>,
    to: &Address,
    limits: WaitLimits<'_>,
) -> Result<BoundId, Error> {
    let from = from.map_or(ptr::null_mut(), Address::as_raw);
    let end = Deadline::after(limits.limit).min(limits.deadline);
    loop {
        let left = end.left();
        let limit = left.min(ATTEMPT);
        // Each attempt ends with an event of the core, which is late on a busy machine: wait for
        // it.
        let longer = WaitLimits {
            limit: Msecs::new(left.get().saturating_add(ATTEMPT.get())),
            ..limits
        };
        let answer = id.step(Stage::Address, longer, |_| {
            // SAFETY: By the invariants of `CmId`, the CM ID is valid. The addresses are valid and
            // only read; `from` may be null.
            unsafe {
                bindings::rdma_resolve_addr(id.as_ptr(), from, to.as_raw(), limit.get() as c_ulong)
            }
        });
        match answer {
            // SAFETY: The address is resolved, so the CM ID has a device.
            Ok(()) => return Ok(unsafe { BoundId::new(id) }),
            Err(error) if !error.cause.is_core_timeout() => return Err(error),
            Err(error) if end.is_over() => {
                return Err(Error {
                    cause: Cause::TimedOut(end.span()),
                    ..error
                })
            }
            Err(_) => {}
        }
    }
}

/// Resolves the route of a CM ID whose address is resolved (`rdma_resolve_route`). Sleeps.
pub(super) fn resolve_route(id: &CmId, limits: WaitLimits<'_>) -> Result<(), Error> {
    begin_route(id, limits)?;
    id.finish_step(Stage::Route, limits)
}

/// Begins to resolve the route, for which [`resolve_route`] also waits. May sleep.
fn begin_route(id: &CmId, limits: WaitLimits<'_>) -> Result<(), Error> {
    id.begin_step(Stage::Route, limits, |limit| {
        // SAFETY: By the invariants of `CmId`, the CM ID is valid. Its address is resolved.
        unsafe { bindings::rdma_resolve_route(id.as_ptr(), limit.get() as c_ulong) }
    })
}

/// Sends the connection request of a CM ID whose route is resolved (`rdma_connect`). `queue` is told when
/// the connection ends. Returns the limits of this side. May sleep.
fn begin_connect(
    id: &BoundId,
    queue: Arc<dyn OnDisconnect>,
    parameters: Parameters<'_>,
    limits: WaitLimits<'_>,
) -> Result<RdAtomicLimits, Error> {
    let device = id.device();
    let rd_atomic = RdAtomicLimits::new(&parameters, &device.attributes());
    let mut request = parameters.as_raw(Stage::Connect, Message::Request, device, rd_atomic)?;
    id.tell(queue);
    // The connection manager retransmits the request, so only the deadline limits the wait for the
    // peer's reply.
    id.begin_step(Stage::Connect, limits.until_deadline(), |_| {
        // SAFETY: By the invariants of `CmId`, the CM ID is valid, and its route is resolved.
        // `request` is valid, and its private data is copied before the call returns.
        unsafe { bindings::rdma_connect(id.as_ptr(), &mut request) }
    })?;
    Ok(rd_atomic)
}

/// A CM ID with a resolved address, and thus with a local device.
pub struct Addressed<E: Endpoint> {
    id: BoundId,
    route_begun: bool,
    _endpoint: PhantomData<fn(E)>,
}

impl<E: Endpoint> Addressed<E> {
    /// Returns the local device that the connection will use. Any context.
    pub fn device(&self) -> &Device {
        self.id.device()
    }

    /// Begins to resolve the route (`rdma_resolve_route`), so that it is found while the queue pair is
    /// created. [`Prepared::start`] waits for it. To be called after
    /// [`set_service_type`](Self::set_service_type) and [`set_ack_timeout`](Self::set_ack_timeout), which the
    /// route depends on. May sleep.
    ///
    /// # Errors
    ///
    /// [`Stage::Route`].
    pub fn begin_route(&mut self, limits: WaitLimits<'_>) -> Result<(), Error> {
        if !self.route_begun {
            begin_route(&self.id, limits)?;
            self.route_begun = true;
        }
        Ok(())
    }

    /// Sets the IP type of service, or the InfiniBand service level, of the connection
    /// (`rdma_set_service_type`). It takes effect when the route is resolved. Any context.
    pub fn set_service_type(&self, tos: u8) {
        // SAFETY: By the invariants of `CmId`, the CM ID is valid.
        unsafe { bindings::rdma_set_service_type(self.id.as_ptr(), tos.into()) };
    }

    /// Sets how long to wait for an acknowledgement before retransmission
    /// (`rdma_set_ack_timeout`). The default is derived from the path. May sleep.
    ///
    /// # Errors
    ///
    /// The error of C; there is none for a reliable queue pair.
    pub fn set_ack_timeout(&self, timeout: AckTimeout) -> Result
    where
        E::QpType: Reliable,
    {
        self.id.set_ack_timeout(timeout)
    }

    /// Sets how long a peer must wait before it repeats a send for which no receive was posted
    /// (`rdma_set_min_rnr_timer`). The default is 655 ms. May sleep.
    ///
    /// # Errors
    ///
    /// The error of C; there is none for a reliable queue pair.
    pub fn set_min_rnr_timer(&self, timer: RnrTimer) -> Result
    where
        E::QpType: Reliable,
    {
        self.id.set_min_rnr_timer(timer)
    }

    /// Creates the queue pair (`rdma_create_qp`). Sleeps.
    ///
    /// `owner` is the name that `rdma res show qp` prints.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `init_attr` belongs to another device, or for more capacity than the device has;
    /// `ENOMEM`.
    pub fn create_queue_pair(
        self,
        init_attr: QpInitAttr<E>,
        context: impl PinInit<E, kernel::error::Error>,
        owner: &'static CStr,
    ) -> Result<Prepared<E>> {
        let Self {
            id, route_begun, ..
        } = self;
        // SAFETY: The CM ID is consumed, so it has no other queue pair. `Prepared` and `Connected`
        // drop the CM ID before the queue pair.
        let queue = unsafe { id.create_queue_pair(init_attr, context, owner)? };
        Ok(Prepared {
            id,
            route_begun,
            queue: OwnedQp::new(queue),
        })
    }
}

/// A CM ID with a queue pair, not yet connected. Receives may be posted. Dropping it drains the queue pair,
/// which sleeps.
pub struct Prepared<E: Endpoint> {
    // Dropped before `queue`, to which the CM ID points.
    id: BoundId,
    route_begun: bool,
    queue: OwnedQp<E>,
}

impl<E: Endpoint> Prepared<E> {
    /// Returns the queue pair. Any context.
    pub fn queue_pair(&self) -> &Arc<QueuePair<E>> {
        &self.queue
    }

    /// Resolves the route and connects (`rdma_resolve_route`, `rdma_connect`). Sleeps. The peer may
    /// send as soon as it has accepted, which may be before this returns.
    ///
    /// # Errors
    ///
    /// [`Stage::Route`] or [`Stage::Connect`].
    pub fn connect(
        self,
        parameters: Parameters<'_>,
        limits: WaitLimits<'_>,
    ) -> Result<Connected<E>, Error> {
        self.start(parameters, limits)?.finish(limits)
    }

    /// Resolves the route and sends the connection request. Sleeps, but not for the reply. Further
    /// connections may be started meanwhile.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn start(
        self,
        parameters: Parameters<'_>,
        limits: WaitLimits<'_>,
    ) -> Result<Connecting<E>, Error> {
        match self.route_begun {
            true => self.id.finish_step(Stage::Route, limits)?,
            false => resolve_route(&self.id, limits)?,
        }
        self.queue.set_receiving();
        let rd_atomic = begin_connect(&self.id, self.queue.clone(), parameters, limits)?;
        Ok(Connecting {
            prepared: self,
            rd_atomic,
        })
    }
}

/// A connection whose request was sent. Dropping it drains the queue pair, which sleeps.
pub struct Connecting<E: Endpoint> {
    prepared: Prepared<E>,
    /// The limits of this side.
    rd_atomic: RdAtomicLimits,
}

impl<E: Endpoint> Connecting<E> {
    /// Returns the queue pair. Any context.
    pub fn queue_pair(&self) -> &Arc<QueuePair<E>> {
        &self.prepared.queue
    }

    /// Waits until the peer has accepted the connection. Sleeps.
    ///
    /// # Errors
    ///
    /// [`Stage::Connect`].
    pub fn finish(self, limits: WaitLimits<'_>) -> Result<Connected<E>, Error> {
        let id = &self.prepared.id;
        id.finish_step(Stage::Connect, limits.until_deadline())?;
        let peer = id.peer();
        let rd_atomic = self.rd_atomic.agreed(&peer);
        let Prepared { id, queue, .. } = self.prepared;
        Ok(Connected::new(id, queue, peer, rd_atomic))
    }
}
