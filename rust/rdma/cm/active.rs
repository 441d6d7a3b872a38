// SPDX-License-Identifier: GPL-2.0

//! The steps of the active side, from id to connected queue pair.

use super::{
    cm_id::CmId,
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
            QpInitAttr,
            QueuePair,
            Reliable, //
        },
    },
    sync::{
        Deadline,
        Msecs,
        TimedCompletion, //
    },
};
use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    error::to_result,
    ffi::c_ulong,
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// One attempt to find an address. The core asks the network before it listens
/// for the answer, and looks again only when its time is over: if the answer was
/// faster, that is how long it goes unseen.
const ATTEMPT: Msecs = Msecs::new(500);

/// An id of the connection manager, not yet resolved.
pub struct Id<E: Endpoint> {
    id: CmId,
    _endpoint: PhantomData<fn(E)>,
}

impl<E: Endpoint> Id<E> {
    /// Creates an id for a connection in `namespace`, which it holds. `wake` is
    /// completed whenever there is something to look at; `owner` is what
    /// `rdma res show cm_id` names. May sleep.
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
            id: CmId::new::<E::QpType>(namespace, wake, owner)?,
            _endpoint: PhantomData,
        })
    }

    /// Lets `observer` hear of all events from now on, until the id is destroyed, as the
    /// connection that becomes of it is when it is dropped.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.id.observe(observer);
    }

    /// Lets [`resolve`](Self::resolve) use a source port that other ids use, too, as
    /// long as nobody listens on it (`rdma_set_reuseaddr`).
    ///
    /// # Errors
    ///
    /// `EINVAL` for an id that is bound.
    pub fn reuse_address(&self) -> Result {
        // SAFETY: The id is ours.
        to_result(unsafe { bindings::rdma_set_reuseaddr(self.id.as_ptr(), 1) })
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
        limits: WaitLimits<'_>,
    ) -> Result<Addressed<E>, Error> {
        resolve(&self.id, from, to, limits)?;
        // INVARIANT: Resolved, so it has a device.
        Ok(Addressed(self))
    }
}

/// Resolves the address of an id for datagrams, which its device must have.
pub(crate) fn resolve_for_datagrams(
    id: &CmId,
    from: Option<&Address>,
    to: &Address,
    limits: WaitLimits<'_>,
) -> Result<(), Error> {
    resolve(id, from, to, limits)?;
    // SAFETY: Resolved, so it has a device.
    let (device, port) = unsafe { (id.device(), id.port()) };
    // The connection manager would ask for a connection.
    if port.is_some_and(|port| port.protocol() == Protocol::Iwarp) {
        return Err(Error {
            stage: Stage::Address,
            cause: Cause::Lacks(device.name(), "datagrams"),
        });
    }
    Ok(())
}

/// Resolves the address of an id, which then has a device.
pub(crate) fn resolve(
    id: &CmId,
    from: Option<&Address>,
    to: &Address,
    limits: WaitLimits<'_>,
) -> Result<(), Error> {
    let from = from.map_or(ptr::null_mut(), Address::as_raw);
    let end = Deadline::after(limits.limit).min(limits.deadline);
    loop {
        let left = end.left();
        let limit = left.min(ATTEMPT);
        // The core answers by itself, if late where the machine is busy: that is waited for.
        let longer = WaitLimits {
            limit: Msecs::new(left.get().saturating_add(ATTEMPT.get())),
            ..limits
        };
        let answer = id.step(Stage::Address, longer, |_| {
            // SAFETY: The id is ours; the addresses are valid, and only read.
            unsafe {
                bindings::rdma_resolve_addr(id.as_ptr(), from, to.as_raw(), limit.get() as c_ulong)
            }
        });
        match answer {
            Ok(()) => return Ok(()),
            Err(error) if !error.cause.is_core_timeout() => return Err(error),
            Err(error) if end.left() == Msecs::new(0) => {
                return Err(Error {
                    cause: Cause::TimedOut(end.span()),
                    ..error
                })
            }
            Err(_) => {}
        }
    }
}

/// Resolves the route of an id whose address is.
pub(super) fn resolve_route(id: &CmId, limits: WaitLimits<'_>) -> Result<(), Error> {
    id.step(Stage::Route, limits, |limit| {
        // SAFETY: The id is ours and its address is resolved.
        unsafe { bindings::rdma_resolve_route(id.as_ptr(), limit.get() as c_ulong) }
    })
}

/// Sets how long an acknowledgement may take, see [`Addressed::set_ack_timeout`].
pub(super) fn set_ack_timeout(id: &CmId, exponent: u8) -> Result {
    if exponent >= 32 {
        return Err(EINVAL);
    }
    // SAFETY: The id is ours.
    to_result(unsafe { bindings::rdma_set_ack_timeout(id.as_ptr(), exponent) })
}

/// Sets how long a peer is asked to wait, see [`Addressed::set_min_rnr_timer`].
pub(super) fn set_min_rnr_timer(id: &CmId, code: u8) -> Result {
    if code >= 32 {
        return Err(EINVAL);
    }
    // SAFETY: The id is ours.
    to_result(unsafe { bindings::rdma_set_min_rnr_timer(id.as_ptr(), code) })
}

/// An id that has found its device.
///
/// # Invariants
///
/// The id's device is set, and cannot go before the id does.
pub struct Addressed<E: Endpoint>(Id<E>);

impl<E: Endpoint> Addressed<E> {
    /// The local device that the connection will use.
    pub fn device(&self) -> &Device {
        // SAFETY: By the type invariant.
        unsafe { self.0.id.device() }
    }

    /// Sets the IP type of service, or InfiniBand service level, of the
    /// connection (`rdma_set_service_type`).
    pub fn set_service_type(&self, tos: u8) {
        // SAFETY: The id is ours.
        unsafe { bindings::rdma_set_service_type(self.0.id.as_ptr(), tos.into()) };
    }

    /// Sets how long to wait for an acknowledgement before retransmitting:
    /// 4.096 µs × 2^`exponent`, and 0 for ever (`rdma_set_ack_timeout`). Without it
    /// the path says.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an exponent above 31.
    pub fn set_ack_timeout(&self, exponent: u8) -> Result
    where
        E::QpType: Reliable,
    {
        set_ack_timeout(&self.0.id, exponent)
    }

    /// Sets how long a peer that finds no receive posted is asked to wait, in the
    /// code of the specification's table of RNR NAK timers: 1 is 10 µs, 31 is
    /// 492 ms, and 0, which it is without this call, 655 ms
    /// (`rdma_set_min_rnr_timer`).
    ///
    /// # Errors
    ///
    /// `EINVAL` for a code above 31.
    pub fn set_min_rnr_timer(&self, code: u8) -> Result
    where
        E::QpType: Reliable,
    {
        set_min_rnr_timer(&self.0.id, code)
    }

    /// Creates the queue pair (`rdma_create_qp`). `owner` is what `rdma res show
    /// qp` names. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `init_attr` are of another device, or for more capacity than
    /// the device has; `ENOMEM`.
    pub fn create_queue_pair(
        self,
        init_attr: QpInitAttr<E>,
        context: impl PinInit<E, kernel::error::Error>,
        owner: &'static CStr,
    ) -> Result<Prepared<E>> {
        let id = self.0.id;
        // SAFETY: By the type invariant; the id is consumed, so it has no other
        // queue pair. `Prepared` and `Connected` destroy it before they drop the
        // queue pair.
        let queue = unsafe { id.create_queue_pair(init_attr, context, owner)? };
        Ok(Prepared { id, queue })
    }
}

/// An id with a queue pair, not yet connected; receives may be posted.
pub struct Prepared<E: Endpoint> {
    // Dropped first: the id knows the queue pair.
    id: CmId,
    queue: Arc<QueuePair<E>>,
}

impl<E: Endpoint> Prepared<E> {
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
        limits: WaitLimits<'_>,
    ) -> Result<Connected<E>, Error> {
        let device = self.queue.device();
        let rd_atomic = RdAtomicLimits::new(&parameters, &device.attributes());
        let mut request = parameters.as_raw(Stage::Connect, Message::Request, device, rd_atomic)?;
        resolve_route(&self.id, limits)?;
        self.id.tell(self.queue.clone());
        // The peer's answer is limited by the deadline only: the connection
        // manager repeats the request by itself.
        let limits = WaitLimits {
            limit: limits.deadline.left(),
            ..limits
        };
        self.id.step(Stage::Connect, limits, |_| {
            // SAFETY: The id is ours and its route is resolved; the private data
            // is copied before the call returns.
            unsafe { bindings::rdma_connect(self.id.as_ptr(), &mut request) }
        })?;
        let peer = self.id.peer();
        let rd_atomic = rd_atomic.agreed(&peer);
        Ok(Connected::new(self.id, self.queue, peer, rd_atomic))
    }
}
