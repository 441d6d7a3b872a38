// SPDX-License-Identifier: GPL-2.0

//! Services for datagrams: an address and a port stand for a queue pair.
//!
//! Who wants to send datagrams asks for the service at an address ([`Service::find`])
//! and hears the number of the queue pair, its Q_Key, and the way there. Who offers
//! it ([`ServiceListener`]) answers each [`Query`] with that. Nothing is connected:
//! the queue pairs are made by hand, see [`qp::create`](crate::rdma::qp::create).
//! The specification calls it service ID resolution (SIDR).
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
    cm_id::CmId,
    destination::Destination,
    incoming::{
        accept,
        reject, //
    },
    listener::RawListener,
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

/// The Q_Key of whoever has no reason for another one (`RDMA_UDP_QKEY`): that of
/// multicast groups, and of the programs of rdmacm-utils.
pub const QKEY: Qkey = Qkey(bindings::RDMA_UDP_QKEY);

/// No reads and atomics: there are none of datagrams.
const NONE: RdAtomicLimits = RdAtomicLimits {
    responder_resources: 0,
    initiator_depth: 0,
};

/// A service that was found.
///
/// # Invariants
///
/// The id's device is set, and cannot go before the id does.
pub struct Service {
    // Dropped first: it names the device, which the id holds.
    destination: Destination,
    id: CmId,
    peer: PeerParameters,
}

impl Service {
    /// Asks for the service at `to`, from `from` if given, telling it `private_data`,
    /// at most 180 bytes (`rdma_resolve_addr`, `rdma_resolve_route`, `rdma_connect`).
    /// `wake` is completed whenever there is something to look at; `owner` is what
    /// `rdma res show cm_id` names. Sleeps.
    ///
    /// # Errors
    ///
    /// Of [`Stage::Address`], where [`Cause::Lacks`] is a device without datagrams, of
    /// [`Stage::Route`] and of [`Stage::Connect`], where [`Cause::NoService`] is what the
    /// peer says.
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
        let id = CmId::new::<Ud>(namespace, wake, owner)
            .map_err(|error| Stage::Address.failed(error))?;
        resolve_for_datagrams(&id, from, to, limits)?;
        // SAFETY: Resolved, so it has a device.
        let device = unsafe { id.device() };
        let parameters = Parameters {
            private_data,
            ..Parameters::default()
        };
        let mut request = parameters.as_raw(stage, Message::ServiceRequest, device, NONE)?;
        resolve_route(&id, limits)?;
        let answer = WaitLimits {
            limit: limits.deadline.left(),
            ..limits
        };
        id.step(stage, answer, |_| {
            // SAFETY: The id is ours and its route is resolved; the private data is
            // copied before the call returns.
            unsafe { bindings::rdma_connect(id.as_ptr(), &mut request) }
        })?;
        let peer = id.peer();
        // INVARIANT: Resolved, so it has a device.
        Ok(Self {
            destination: id.destination().ok_or(stage.failed(EINVAL))?,
            id,
            peer,
        })
    }

    /// The local device that the way begins at.
    pub fn device(&self) -> &Device {
        // SAFETY: By the type invariant.
        unsafe { self.id.device() }
    }

    /// The port of the device; `None` if it is none of this kernel's.
    pub fn port(&self) -> Option<Port<'_>> {
        // SAFETY: By the type invariant.
        unsafe { self.id.port() }
    }

    /// The number of the queue pair that datagrams are to be sent to.
    pub fn number(&self) -> Qpn {
        self.destination.number()
    }

    /// What they must bear.
    pub fn qkey(&self) -> Qkey {
        self.destination.key()
    }

    /// What the peer told with its answer: 136 bytes, filled up with zeroes.
    pub fn private_data(&self) -> &[u8] {
        self.peer.private_data()
    }

    /// A handle for the way there. Sleeps.
    ///
    /// # Errors
    ///
    /// As [`AddressHandle::new`].
    pub fn address_handle(&self, pd: Arc<ProtectionDomain>) -> Result<AddressHandle> {
        self.destination
            .address_handle(pd, self.port().ok_or(EINVAL)?)
    }
}

/// Listens for queries for a service; dropping it rejects those that wait.
pub struct ServiceListener(RawListener);

impl ServiceListener {
    /// As [`Listener::new`](super::Listener::new). The ports of datagrams are others
    /// than those of connections.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn new(
        namespace: &Namespace,
        address: &Address,
        backlog: u16,
        wake: Arc<TimedCompletion>,
        owner: &'static CStr,
    ) -> Result<Self, Error> {
        RawListener::new::<Ud>(namespace, address, backlog, wake, owner).map(Self)
    }

    /// The address that it listens at, with the port that it got.
    pub fn local_address(&self) -> &Address {
        self.0.local_address()
    }

    /// As [`Listener::next`](super::Listener::next).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn next(&self) -> Result<Option<Query>, Lost> {
        let query = |id: CmId| Query {
            peer: id.taken(),
            // INVARIANT: The id of a request has a device.
            id,
        };
        Ok(self.0.next()?.map(query))
    }
}

/// A peer's question where a service is; dropping it says that there is none.
///
/// # Invariants
///
/// The id's device is set, and cannot go before the id does.
pub struct Query {
    id: CmId,
    peer: PeerParameters,
}

impl Query {
    /// The local device that the question came through, on which the queue pair must
    /// be.
    pub fn device(&self) -> &Device {
        // SAFETY: By the type invariant.
        unsafe { self.id.device() }
    }

    /// The port of the device; `None` if it is none of this kernel's.
    pub fn port(&self) -> Option<Port<'_>> {
        // SAFETY: By the type invariant.
        unsafe { self.id.port() }
    }

    /// Where the question comes from.
    pub fn peer_address(&self) -> Address {
        self.id.peer_address()
    }

    /// The address that the peer asked for.
    pub fn local_address(&self) -> Address {
        self.id.local_address()
    }

    /// What the peer told: 180 bytes, filled up with zeroes, and all of them its word
    /// only.
    pub fn private_data(&self) -> &[u8] {
        self.peer.private_data()
    }

    /// Answers that the service is at queue pair `number`, whose datagrams must bear
    /// `key`, with at most 136 bytes of private data (`rdma_accept`). Whether the
    /// peer has heard it, nobody says; it asks again if not. Sleeps.
    ///
    /// # Errors
    ///
    /// Of [`Stage::Accept`]: [`Cause::PrivateDataTooLong`]; `EINVAL` for a key of 0,
    /// or what has happened to the question since it came.
    pub fn answer(self, number: Qpn, key: Qkey, private_data: &[u8]) -> Result<(), Error> {
        let stage = Stage::Accept;
        let parameters = Parameters {
            private_data,
            ..Parameters::default()
        };
        if key.0 == 0 {
            // The connection manager would take it for its own.
            return Err(stage.failed(EINVAL));
        }
        let mut reply = bindings::rdma_conn_param {
            qp_num: number.get(),
            qkey: key.0,
            ..parameters.as_raw(stage, Message::ServiceReply, self.device(), NONE)?
        };
        // SAFETY: The private data is borrowed.
        to_result(unsafe { accept(&self.id, &mut reply) }).map_err(|error| Error {
            stage,
            cause: self.id.ended().unwrap_or(Cause::Code(error)),
        })
    }

    /// Says that there is no such service, with at most 136 bytes of private data.
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// As [`Incoming::reject`](super::Incoming::reject).
    pub fn reject(self, private_data: &[u8]) -> Result<(), Error> {
        reject(&self.id, Message::ServiceReply, private_data, self.device())
    }
}
