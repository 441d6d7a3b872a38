// SPDX-License-Identifier: GPL-2.0

//! The steps of the passive side, from a request to a connected queue pair.

use super::{
    active::{
        set_ack_timeout,
        set_min_rnr_timer, //
    },
    cm_id::CmId,
    peer::Message,
    Address,
    Cause,
    Connected,
    Endpoint,
    Error,
    Parameters,
    PeerParameters,
    RdAtomicLimits,
    Stage,
    WaitLimits, //
};
use crate::{
    bindings,
    rdma::{
        device::Device,
        qp::{
            QpInitAttr,
            QueuePair,
            Reliable, //
        },
    },
    sync::TimedCompletion, //
};
use core::{
    ffi::c_int,
    marker::PhantomData, //
};
use kernel::{
    error::to_result,
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// A peer's request for a connection; dropping it rejects, without private data.
///
/// # Invariants
///
/// The id's device is set, and cannot go before the id does.
pub struct Incoming<E: Endpoint> {
    id: CmId,
    peer: PeerParameters,
    _endpoint: PhantomData<fn(E)>,
}

impl<E: Endpoint> Incoming<E> {
    /// `id` must be that of a request, which has a device.
    pub(super) fn new(id: CmId) -> Self {
        let peer = id.taken();
        Self {
            id,
            peer,
            _endpoint: PhantomData,
        }
    }

    /// The local device that the request came through.
    pub fn device(&self) -> &Device {
        // SAFETY: By the type invariant.
        unsafe { self.id.device() }
    }

    /// What the peer asks for.
    pub fn peer(&self) -> &PeerParameters {
        &self.peer
    }

    /// Where the request comes from.
    pub fn peer_address(&self) -> Address {
        self.id.peer_address()
    }

    /// The address that the peer asked for.
    pub fn local_address(&self) -> Address {
        self.id.local_address()
    }

    /// From now on `wake` is completed when there is something to look at, and not
    /// the listener's: for a thread of its own that deals with the connection.
    pub fn wait_on(&self, wake: Arc<TimedCompletion>) {
        self.id.wait_on(wake);
    }

    /// As [`Addressed::set_ack_timeout`](super::Addressed::set_ack_timeout).
    ///
    /// # Errors
    ///
    /// `EINVAL` for an exponent above 31.
    pub fn set_ack_timeout(&self, exponent: u8) -> Result
    where
        E::QpType: Reliable,
    {
        set_ack_timeout(&self.id, exponent)
    }

    /// As [`Addressed::set_min_rnr_timer`](super::Addressed::set_min_rnr_timer).
    ///
    /// # Errors
    ///
    /// `EINVAL` for a code above 31.
    pub fn set_min_rnr_timer(&self, code: u8) -> Result
    where
        E::QpType: Reliable,
    {
        set_min_rnr_timer(&self.id, code)
    }

    /// Rejects the request, which tells the peer `private_data` (`rdma_reject`): at most
    /// 148 bytes with InfiniBand and RoCE, which fill it up with zeroes, and 255 with
    /// iWARP. Sleeps.
    ///
    /// # Errors
    ///
    /// [`PrivateDataTooLong`](super::Cause::PrivateDataTooLong), when the peer hears a
    /// rejection without any, and what the connection manager answers should the peer be
    /// gone.
    pub fn reject(self, private_data: &[u8]) -> Result<(), Error> {
        reject(&self.id, Message::Rejection, private_data, self.device())
    }

    /// Creates the queue pair (`rdma_create_qp`). `owner` is what `rdma res show
    /// qp` names. If it fails the request is rejected. Sleeps.
    ///
    /// # Errors
    ///
    /// Of [`Stage::Accept`]: what has happened to the request since it came, or
    /// `EINVAL` if nobody has said so yet; `EINVAL` if `init_attr` are of another device,
    /// or for more capacity than the device has; `ENOMEM`.
    pub fn create_queue_pair(
        self,
        init_attr: QpInitAttr<E>,
        context: impl PinInit<E, kernel::error::Error>,
        owner: &'static CStr,
    ) -> Result<Accepting<E>, Error> {
        let Self { id, peer, .. } = self;
        // SAFETY: By the type invariant; the request is consumed, so the id has no
        // other queue pair. `Accepting` and `Connected` destroy the id before they
        // drop the queue pair.
        let queue = unsafe { id.create_queue_pair(init_attr, context, owner) };
        // The connection manager has no states to tell for a request that has ended.
        let queue = queue.map_err(|error| Error {
            stage: Stage::Accept,
            cause: id.ended().unwrap_or(Cause::Code(error)),
        })?;
        Ok(Accepting { id, queue, peer })
    }
}

/// Rejects the request of `id` with a message of this kind.
pub(super) fn reject(
    id: &CmId,
    message: Message,
    private_data: &[u8],
    device: &Device,
) -> Result<(), Error> {
    let stage = Stage::Accept;
    let length = message
        .length_of(private_data, device)
        .map_err(|cause| Error { stage, cause })?;
    let reason = bindings::ib_cm_rej_reason_IB_CM_REJ_CONSUMER_DEFINED as u8;
    let data = private_data.as_ptr().cast();
    // SAFETY: The id is ours; the private data is copied before the call returns.
    to_result(unsafe { bindings::rdma_reject(id.as_ptr(), data, length, reason) })
        .map_err(|error| stage.failed(error))
}

/// Accepts the request of `id` (`rdma_accept`), under its lock.
///
/// # Safety
///
/// `reply` must name private data that is there.
pub(super) unsafe fn accept(id: &CmId, reply: &mut bindings::rdma_conn_param) -> c_int {
    let id = id.as_ptr();
    // SAFETY: The id is ours and that of a request; by the contract, the private data
    // is there, and it is copied before the call returns.
    unsafe {
        bindings::rdma_lock_handler(id);
        let result = bindings::rdma_accept(id, reply);
        bindings::rdma_unlock_handler(id);
        result
    }
}

/// A request with a queue pair, not yet accepted; receives may, and should, be
/// posted. Dropping it rejects.
pub struct Accepting<E: Endpoint> {
    // Dropped first: the id knows the queue pair.
    id: CmId,
    queue: Arc<QueuePair<E>>,
    peer: PeerParameters,
}

impl<E: Endpoint> Accepting<E> {
    /// The queue pair.
    pub fn queue_pair(&self) -> &Arc<QueuePair<E>> {
        &self.queue
    }

    /// Accepts, and waits until the peer has said that it knows (`rdma_accept`).
    /// Sleeps. The peer may send from here on: a receive may complete before this
    /// returns. Sends are to wait until it has.
    ///
    /// # Errors
    ///
    /// Of [`Stage::Accept`]: also what has happened to the request since it came.
    // What it takes of the stack is not the caller's, too.
    #[inline(never)]
    pub fn accept(
        self,
        parameters: Parameters<'_>,
        limits: WaitLimits<'_>,
    ) -> Result<Connected<E>, Error> {
        let device = self.queue.device();
        let rd_atomic = RdAtomicLimits::new(&parameters, &device.attributes()).agreed(&self.peer);
        let mut reply = parameters.as_raw(Stage::Accept, Message::Acceptance, device, rd_atomic)?;
        self.id.tell(self.queue.clone());
        // As when connecting, only the deadline limits the exchange of messages.
        let limits = WaitLimits {
            limit: limits.deadline.left(),
            ..limits
        };
        self.id.step(Stage::Accept, limits, |_| {
            // SAFETY: The private data is borrowed.
            unsafe { accept(&self.id, &mut reply) }
        })?;
        Ok(Connected::new(self.id, self.queue, self.peer, rd_atomic))
    }
}
