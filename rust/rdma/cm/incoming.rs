// SPDX-License-Identifier: GPL-2.0

//! The steps of the passive side, from a connection request to a connected queue pair.

use super::{
    cm_id::{
        BoundId,
        CmId, //
    },
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
            AckTimeout,
            OwnedQp,
            QpInitAttr,
            QueuePair,
            Reliable,
            RnrTimer, //
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

/// A peer's connection request. Dropping it rejects the request, without private data.
pub struct Incoming<E: Endpoint> {
    id: BoundId,
    peer: PeerParameters,
    _endpoint: PhantomData<fn(E)>,
}

impl<E: Endpoint> Incoming<E> {
    /// Takes over the request of `id`.
    pub(super) fn new(id: BoundId) -> Self {
        let peer = id.taken();
        Self {
            id,
            peer,
            _endpoint: PhantomData,
        }
    }

    /// Returns the local device that the request came through.
    pub fn device(&self) -> &Device {
        self.id.device()
    }

    /// Returns the parameters of the request.
    pub fn peer(&self) -> &PeerParameters {
        &self.peer
    }

    /// Returns the address of the peer.
    pub fn peer_address(&self) -> Address {
        self.id.peer_address()
    }

    /// Returns the address that the reply to the request goes to: a GID; on InfiniBand within a subnet a LID, in the
    /// last 4 bytes; on iWARP an IPv6 or mapped IPv4 address.
    ///
    /// A peer may send a request with any [address](Self::peer_address), and any reply address. Only if it then
    /// completes the request, it has this reply address.
    pub fn reply_address(&self) -> [u8; 16] {
        self.id.reply_address()
    }

    /// Returns the local address that the peer connects to.
    pub fn local_address(&self) -> Address {
        self.id.local_address()
    }

    /// Replaces the completion that events complete, which is the listener's by default. Allows
    /// another thread than the listener's to handle the connection.
    pub fn wait_on(&self, wake: Arc<TimedCompletion>) {
        self.id.wait_on(wake);
    }

    /// Sets the acknowledgement time-out, as
    /// [`Addressed::set_ack_timeout`](super::Addressed::set_ack_timeout).
    pub fn set_ack_timeout(&self, timeout: AckTimeout) -> Result
    where
        E::QpType: Reliable,
    {
        self.id.set_ack_timeout(timeout)
    }

    /// Limits the acknowledgement time-out to `most`. Without a limit, the peer chooses the time-out with its
    /// request, up to 2.4 hours for each attempt, and so how long an unanswered RDMA read keeps its data. May sleep.
    ///
    /// # Errors
    ///
    /// The error of C; there is none for a reliable queue pair.
    pub fn limit_ack_timeout(&self, most: AckTimeout) -> Result
    where
        E::QpType: Reliable,
    {
        self.id.limit_ack_timeout(most)
    }

    /// Sets the minimum RNR timer, as
    /// [`Addressed::set_min_rnr_timer`](super::Addressed::set_min_rnr_timer).
    pub fn set_min_rnr_timer(&self, timer: RnrTimer) -> Result
    where
        E::QpType: Reliable,
    {
        self.id.set_min_rnr_timer(timer)
    }

    /// Rejects the request with `private_data` (`rdma_reject`). Sleeps.
    ///
    /// InfiniBand and RoCE carry at most 148 bytes, which they pad with zeroes; iWARP carries 255.
    ///
    /// # Errors
    ///
    /// - [`PrivateDataTooLong`](super::Cause::PrivateDataTooLong): the request is rejected without
    ///   private data.
    /// - The error of `rdma_reject`, for example if the peer is gone.
    pub fn reject(self, private_data: &[u8]) -> Result<(), Error> {
        reject(&self.id, Message::Rejection, private_data)
    }

    /// Creates the queue pair (`rdma_create_qp`). Sleeps.
    ///
    /// `owner` is the name that `rdma res show qp` prints.
    ///
    /// # Errors
    ///
    /// Returns the request, with the error of [`Stage::Accept`]. The cause is:
    ///
    /// - why the request has ended, if it has; `EINVAL` as long as the event for that has not
    ///   arrived;
    /// - `EINVAL` if `init_attr` belongs to another device, or for more capacity than the device
    ///   has;
    /// - `ENOMEM`.
    pub fn create_queue_pair(
        self,
        init_attr: QpInitAttr<E>,
        context: impl PinInit<E, kernel::error::Error>,
        owner: &'static CStr,
    ) -> Result<Accepting<E>, Unfinished<Self>> {
        // SAFETY: If there is a queue pair, the request is consumed, so the CM ID has no other one. `Accepting` and
        // `Connected` drop the CM ID before the queue pair.
        let queue = match unsafe { self.id.create_queue_pair(init_attr, context, owner) } {
            Ok(queue) => queue,
            Err(error) => {
                // rdma_create_qp() fails if the request has ended: the reason for its end is more specific.
                let cause = self.id.ended().unwrap_or(Cause::Code(error));
                let stage = Stage::Accept;
                return Err(Unfinished {
                    step: self,
                    error: Error { stage, cause },
                });
            }
        };
        Ok(Accepting {
            id: self.id,
            queue: OwnedQp::new(queue),
            peer: self.peer,
        })
    }
}

/// A step that has failed, with the value that it would have consumed.
pub struct Unfinished<S> {
    /// The value. Dropping it rejects the request, without private data.
    pub step: S,
    /// Why the step has failed.
    pub error: Error,
}

/// Rejects the request of `id` with a message of this kind. Sleeps.
pub(super) fn reject(id: &BoundId, message: Message, private_data: &[u8]) -> Result<(), Error> {
    let stage = Stage::Accept;
    let length = message
        .length_of(private_data, id.device())
        .map_err(|cause| Error { stage, cause })?;
    let reason = bindings::ib_cm_rej_reason_IB_CM_REJ_CONSUMER_DEFINED as u8;
    let data = private_data.as_ptr().cast();
    // SAFETY: By the invariants of `CmId`, the CM ID is valid. The private data has `length` bytes
    // and is copied before the call returns.
    to_result(unsafe { bindings::rdma_reject(id.as_ptr(), data, length, reason) })
        .map_err(|error| stage.failed(error))
}

/// Accepts the request of `id`, with the lock of its event handler held (`rdma_accept`). Sleeps.
///
/// # Safety
///
/// The private data that `reply` points to must be valid.
pub(super) unsafe fn accept(id: &CmId, reply: &mut bindings::rdma_conn_param) -> c_int {
    let id = id.as_ptr();
    // SAFETY: The CM ID is valid, and its handler lock is held as `rdma_accept` requires. `reply`
    // and its private data are valid by the safety requirements, and copied before the call
    // returns.
    unsafe {
        bindings::rdma_lock_handler(id);
        let result = bindings::rdma_accept(id, reply);
        bindings::rdma_unlock_handler(id);
        result
    }
}

/// A request with a queue pair, not yet accepted. Receives may be posted, and should be before the
/// request is accepted. Dropping it rejects the request, and drains the queue pair, which sleeps.
pub struct Accepting<E: Endpoint> {
    // Dropped before `queue`, to which the CM ID points.
    id: BoundId,
    queue: OwnedQp<E>,
    peer: PeerParameters,
}

impl<E: Endpoint> Accepting<E> {
    /// The queue pair.
    pub fn queue_pair(&self) -> &Arc<QueuePair<E>> {
        &self.queue
    }

    /// Accepts the request and waits until the connection is established (`rdma_accept`). Sleeps.
    ///
    /// The peer may send as soon as the request is accepted, so a receive may complete before this
    /// returns. Sends must not be posted until this has returned.
    ///
    /// # Errors
    ///
    /// [`Stage::Accept`]. The cause is why the request has ended, if it has. The peer is rejected without private
    /// data: the connection manager does not cancel its reply for a rejection with data, and repeats the reply for a
    /// minute, for which the drop of the CM ID waits.
    // Not inlined, to keep its locals out of the caller's stack frame.
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
        self.queue.set_receiving();
        // As in `Prepared::connect`, only the deadline limits the exchange of messages.
        let step = || {
            self.id.step(Stage::Accept, limits.until_deadline(), |_| {
                // SAFETY: `reply` points to the private data that `parameters` borrows.
                unsafe { accept(&self.id, &mut reply) }
            })
        };
        // SAFETY: By the invariants of `CmId`, the CM ID is valid.
        unsafe { self.queue.while_accepting(self.id.raw(), step) }?;
        Ok(Connected::new(self.id, self.queue, self.peer, rd_atomic))
    }

    /// Rejects the request with `private_data`, as [`Incoming::reject`]. Sleeps.
    ///
    /// # Errors
    ///
    /// As [`Incoming::reject`].
    pub fn reject(self, private_data: &[u8]) -> Result<(), Error> {
        reject(&self.id, Message::Rejection, private_data)
    }
}
