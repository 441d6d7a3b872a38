// SPDX-License-Identifier: GPL-2.0

//! Services for datagrams: service ID resolution (SIDR).
//!
//! An address and a port identify a service. A client queries the service with [`Service::find`],
//! which returns the number of a queue pair, its Q_Key, and the path to it. A [`ServiceListener`]
//! receives each [`Query`] and answers it.
//!
//! No connection is made. Both sides create their queue pairs with
//! [`qp::create`](crate::rdma::qp::create).
//!
//! ```ignore
//! // samples/ud_service.rs
//! let service =
//!     Service::find(task.namespace(), None, &to, &[], wake, NAME, patience).step("service")?;
//! let there = service
//!     .address_handle(endpoint.domain())
//!     .step("address handle")?;
//! endpoint.send(sends(), there, service.number(), service.qkey())?;
//! ```
//!
//! Source: InfiniBand Architecture Specification, volume 1, section 12.11.

use super::{
    active::{
        resolve_for_datagrams,
        resolve_route, //
    },
    cm_id::BoundId,
    destination::Destination,
    incoming::{
        accept,
        reject, //
    },
    listener::{
        ListenParams,
        RawListener, //
    },
    peer::Message,
    Address,
    Cause,
    Error,
    Lost,
    Parameters,
    PeerParameters,
    RdAtomicLimits,
    Stage,
    WaitLimits, //
};
use crate::{
    bindings,
    net::Namespace,
    rdma::{
        ah::AddressHandle,
        device::{
            Device,
            Port, //
        },
        pd::ProtectionDomain,
        qp::{
            ud::Qkey,
            Qpn,
            Ud, //
        },
    },
    sync::TimedCompletion, //
};
use kernel::{
    error::to_result,
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// The default Q_Key (`RDMA_UDP_QKEY`), used by multicast groups and by the programs of
/// rdmacm-utils.
pub const QKEY: Qkey = Qkey(bindings::RDMA_UDP_QKEY);

/// Datagrams have no RDMA reads and no atomics.
const NONE: RdAtomicLimits = RdAtomicLimits {
    responder_resources: 0,
    initiator_depth: 0,
};

/// A service that was found.
pub struct Service {
    // Dropped before `id`, which keeps its device registered.
    destination: Destination,
    id: BoundId,
    peer: PeerParameters,
}

impl Service {
    /// Queries the service at `to`, from the source address `from` if given (`rdma_resolve_addr`,
    /// `rdma_resolve_route`, `rdma_connect`). Sleeps.
    ///
    /// The query carries `private_data`, at most 180 bytes. `wake` is completed on each event.
    /// `owner` is the name that `rdma res show cm_id` prints.
    ///
    /// # Errors
    ///
    /// - [`Stage::Address`]; the cause is [`Cause::Lacks`] for a device without datagrams.
    /// - [`Stage::Route`].
    /// - [`Stage::Connect`]; the cause is [`Cause::NoService`] if the peer rejects the query.
    pub fn find(
        namespace: &Namespace,
        from: Option<&Address>,
        to: &Address,
        private_data: &[u8],
        wake: Arc<TimedCompletion>,
        owner: &'static CStr,
        limits: WaitLimits<'_>,
    ) -> Result<Self, Error> {
        let stage = Stage::Connect;
        let id = resolve_for_datagrams(namespace, from, to, wake, owner, limits)?;
        let parameters = Parameters {
            private_data,
            ..Parameters::default()
        };
        let mut request = parameters.as_raw(stage, Message::ServiceRequest, id.device(), NONE)?;
        resolve_route(&id, limits)?;
        id.step(stage, limits.until_deadline(), |_| {
            // SAFETY: By the invariants of `CmId`, the CM ID is valid, and its route is resolved.
            // `request` is valid, and its private data is copied before the call returns.
            unsafe { bindings::rdma_connect(id.as_ptr(), &mut request) }
        })?;
        let peer = id.peer();
        Ok(Self {
            destination: id.destination().ok_or(stage.failed(EINVAL))?,
            id,
            peer,
        })
    }

    /// Returns the local device of the path.
    pub fn device(&self) -> &Device {
        self.id.device()
    }

    /// Returns the local port of the path; `None` if the device has no port of that number.
    pub fn port(&self) -> Option<Port<'_>> {
        self.id.port()
    }

    /// Returns the number of the queue pair to send datagrams to.
    pub fn number(&self) -> Qpn {
        self.destination.number()
    }

    /// Returns the Q_Key that datagrams must carry.
    pub fn qkey(&self) -> Qkey {
        self.destination.key()
    }

    /// Returns the private data of the answer: 136 bytes, padded with zeroes.
    pub fn private_data(&self) -> &[u8] {
        self.peer.private_data()
    }

    /// Creates an address handle for the path to the service. Sleeps.
    ///
    /// # Errors
    ///
    /// As [`AddressHandle::new`].
    pub fn address_handle(&self, pd: Arc<ProtectionDomain>) -> Result<AddressHandle> {
        self.destination
            .address_handle(pd, self.port().ok_or(EINVAL)?)
    }
}

/// Listens for service queries. Dropping it rejects the queries that wait.
pub struct ServiceListener(RawListener);

impl ServiceListener {
    /// Listens at `address`, as [`Listener::new`](super::Listener::new) does. Ports of datagrams
    /// are distinct from those of connections.
    ///
    /// # Errors
    ///
    /// As [`Listener::new`](super::Listener::new).
    pub fn new(
        namespace: &Namespace,
        address: &Address,
        params: ListenParams<'_>,
    ) -> Result<Self, Error> {
        RawListener::new::<Ud>(namespace, address, params).map(Self)
    }

    /// Returns the address that the listener is bound to, with its port.
    pub fn local_address(&self) -> &Address {
        self.0.local_address()
    }

    /// Takes the oldest query that waits, as [`Listener::next`](super::Listener::next) does for
    /// connection requests.
    ///
    /// # Errors
    ///
    /// As [`Listener::next`](super::Listener::next).
    pub fn next(&self) -> Result<Option<Query>, Lost> {
        let query = |id: BoundId| Query {
            peer: id.taken(),
            id,
        };
        Ok(self.0.next()?.map(query))
    }
}

/// A peer's service query. Dropping it rejects the query.
pub struct Query {
    id: BoundId,
    peer: PeerParameters,
}

impl Query {
    /// Returns the local device that the query came through. The queue pair of the answer must be
    /// on this device.
    pub fn device(&self) -> &Device {
        self.id.device()
    }

    /// Returns the port of the device; `None` if the device has no port of that number.
    pub fn port(&self) -> Option<Port<'_>> {
        self.id.port()
    }

    /// Returns the address of the peer.
    pub fn peer_address(&self) -> Address {
        self.id.peer_address()
    }

    /// Returns the local address that the peer queries.
    pub fn local_address(&self) -> Address {
        self.id.local_address()
    }

    /// Returns the private data of the query: 180 bytes, padded with zeroes. Not trustworthy.
    pub fn private_data(&self) -> &[u8] {
        self.peer.private_data()
    }

    /// Answers that the service is at queue pair `number` and that datagrams must carry `key`
    /// (`rdma_accept`). `private_data` is at most 136 bytes. Sleeps.
    ///
    /// The answer is not acknowledged. A peer that does not receive it repeats its query.
    ///
    /// # Errors
    ///
    /// [`Stage::Accept`], with the cause:
    ///
    /// - [`Cause::PrivateDataTooLong`];
    /// - `EINVAL` for a key of 0;
    /// - why the query has ended, if it has.
    pub fn answer(self, number: Qpn, key: Qkey, private_data: &[u8]) -> Result<(), Error> {
        let stage = Stage::Accept;
        let parameters = Parameters {
            private_data,
            ..Parameters::default()
        };
        if key.0 == 0 {
            // The connection manager would replace it by the default Q_Key.
            return Err(stage.failed(EINVAL));
        }
        let mut reply = bindings::rdma_conn_param {
            qp_num: number.get(),
            qkey: key.0,
            ..parameters.as_raw(stage, Message::ServiceReply, self.device(), NONE)?
        };
        // SAFETY: `reply` points to the private data that `parameters` borrows.
        to_result(unsafe { accept(&self.id, &mut reply) }).map_err(|error| Error {
            stage,
            cause: self.id.ended().unwrap_or(Cause::Code(error)),
        })
    }

    /// Rejects the query, with at most 136 bytes of private data (`rdma_reject`). Sleeps.
    ///
    /// # Errors
    ///
    /// As [`Incoming::reject`](super::Incoming::reject).
    pub fn reject(self, private_data: &[u8]) -> Result<(), Error> {
        reject(&self.id, Message::ServiceReply, private_data)
    }
}
