// SPDX-License-Identifier: GPL-2.0

//! What the two sides tell each other when they connect.

use super::{
    Cause,
    Error,
    Stage, //
};
use crate::{
    bindings,
    rdma::device::{
        Attributes,
        Device,
        NodeType, //
    },
};
use core::ffi::c_void;

/// What the connection manager itself puts in front of a request's private data.
///
/// Source: InfiniBand Architecture Specification, volume 1, annex A11.
const REQUEST_HEADER: usize = 36;

/// The most private data that any message brings: that of an acceptance.
const RECEIVED: usize = bindings::ib_cm_data_size_IB_CM_REP_PRIVATE_DATA_SIZE as usize;

/// A message of the connection manager that has room for private data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    Request,
    Acceptance,
    Rejection,
    ServiceRequest,
    ServiceReply,
}

impl Message {
    /// The bytes of private data that the message has room for.
    fn room(self, device: &Device) -> usize {
        if device.attributes().node_type == NodeType::Rnic {
            // MPA has more; the connection manager counts in a byte.
            return u8::MAX.into();
        }
        let (room, header) = match self {
            Self::Request => (
                bindings::ib_cm_data_size_IB_CM_REQ_PRIVATE_DATA_SIZE,
                REQUEST_HEADER,
            ),
            Self::Acceptance => (bindings::ib_cm_data_size_IB_CM_REP_PRIVATE_DATA_SIZE, 0),
            Self::Rejection => (bindings::ib_cm_data_size_IB_CM_REJ_PRIVATE_DATA_SIZE, 0),
            Self::ServiceRequest => (
                bindings::ib_cm_data_size_IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE,
                REQUEST_HEADER,
            ),
            Self::ServiceReply => (
                bindings::ib_cm_data_size_IB_CM_SIDR_REP_PRIVATE_DATA_SIZE,
                0,
            ),
        };
        (room as usize).saturating_sub(header)
    }

    /// The length of `private_data`, if there is room for it.
    pub(super) fn length_of(self, private_data: &[u8], device: &Device) -> Result<u8, Cause> {
        let (length, room) = (private_data.len(), self.room(device));
        let fits = u8::try_from(length).ok().filter(|_| length <= room);
        fits.ok_or(Cause::PrivateDataTooLong { length, room })
    }
}

/// What one side tells the other: in its request, or in its acceptance.
#[derive(Clone, Copy)]
pub struct Parameters<'a> {
    /// The consumer's own data. InfiniBand and RoCE have room for 56 bytes in a
    /// request and 196 in an acceptance, iWARP for 255; more is an error.
    pub private_data: &'a [u8],
    /// RDMA reads and atomics of the peer that may be outstanding; none means that
    /// it cannot read at all. Reduced to what the device can and, by whoever
    /// accepts, to what the peer wants.
    pub responder_resources: u8,
    /// RDMA reads and atomics to the peer that may be outstanding; none means that
    /// a read is never sent. Reduced likewise.
    pub initiator_depth: u8,
    /// Retransmissions before the connection is lost, at most 7. Not in an
    /// acceptance: those of the request count.
    pub retry_count: u8,
    /// Retransmissions to a peer without a receive posted; 7 is for ever.
    pub rnr_retry_count: u8,
}

impl Default for Parameters<'_> {
    /// No private data, no reads, and as many retransmissions as there can be.
    fn default() -> Self {
        Self {
            private_data: &[],
            responder_resources: 0,
            initiator_depth: 0,
            retry_count: 7,
            rnr_retry_count: 7,
        }
    }
}

/// RDMA reads and atomics that may be outstanding on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RdAtomicLimits {
    /// Of the peer, to us.
    pub responder_resources: u8,
    /// Of ours, to the peer.
    pub initiator_depth: u8,
}

impl RdAtomicLimits {
    /// What `parameters` want and the device can.
    pub(super) fn new(parameters: &Parameters<'_>, device: &Attributes) -> Self {
        let limit = |wanted: u8, most: u32| u8::try_from(most).map_or(wanted, |m| wanted.min(m));
        Self {
            responder_resources: limit(parameters.responder_resources, device.max_qp_rd_atom),
            initiator_depth: limit(parameters.initiator_depth, device.max_qp_init_rd_atom),
        }
    }

    /// What the peer agrees to, too.
    pub(super) fn agreed(self, peer: &PeerParameters) -> Self {
        Self {
            responder_resources: self.responder_resources.min(peer.responder_resources),
            initiator_depth: self.initiator_depth.min(peer.initiator_depth),
        }
    }
}

impl Parameters<'_> {
    /// The parameters for C, which reads the private data while `self` is borrowed.
    pub(super) fn as_raw(
        &self,
        stage: Stage,
        message: Message,
        device: &Device,
        rd_atomic: RdAtomicLimits,
    ) -> Result<bindings::rdma_conn_param, Error> {
        let private_data_len = message
            .length_of(self.private_data, device)
            .map_err(|cause| Error { stage, cause })?;
        Ok(bindings::rdma_conn_param {
            private_data: self.private_data.as_ptr().cast(),
            private_data_len,
            responder_resources: rd_atomic.responder_resources,
            initiator_depth: rd_atomic.initiator_depth,
            flow_control: 1,
            retry_count: self.retry_count,
            rnr_retry_count: self.rnr_retry_count,
            ..pin_init::zeroed()
        })
    }
}

/// What the peer told: in its request, or in its acceptance. All of it is the
/// peer's word, and to be checked.
#[derive(Clone, Copy)]
pub struct PeerParameters {
    private_data: [u8; RECEIVED],
    length: usize,
    /// RDMA reads and atomics that it wants to have outstanding to us.
    pub responder_resources: u8,
    /// RDMA reads and atomics of ours that it can have outstanding.
    pub initiator_depth: u8,
    /// Retransmissions before it gives the connection up; in a request only.
    pub retry_count: u8,
    /// Retransmissions to us while we have no receive posted; 7 is for ever.
    pub rnr_retry_count: u8,
    /// The number of its queue pair; 0 with iWARP.
    pub queue_pair: u32,
    /// Its receives are those of a shared receive queue.
    pub shared_receive_queue: bool,
}

impl PeerParameters {
    /// A peer that told nothing.
    pub(super) const SILENT: Self = Self {
        private_data: [0; RECEIVED],
        length: 0,
        responder_resources: 0,
        initiator_depth: 0,
        retry_count: 0,
        rnr_retry_count: 0,
        queue_pair: 0,
        shared_receive_queue: false,
    };

    /// # Safety
    ///
    /// `event` must be that of a handler that is called with a connection request
    /// or an established connection.
    pub(super) unsafe fn from_event(event: *const bindings::rdma_cm_event) -> Self {
        // SAFETY: By the contract, the event has the parameters of a connection.
        let told = unsafe { &(*event).param.conn };
        Self {
            responder_resources: told.responder_resources,
            initiator_depth: told.initiator_depth,
            retry_count: told.retry_count,
            rnr_retry_count: told.rnr_retry_count,
            queue_pair: told.qp_num,
            shared_receive_queue: told.srq != 0,
            // SAFETY: By the contract, so many bytes of the event are there.
            ..unsafe { Self::with_data(told.private_data, told.private_data_len) }
        }
    }

    /// # Safety
    ///
    /// `event` must be that of a handler that is called with the request for a service
    /// of datagrams, or its answer.
    pub(super) unsafe fn from_datagram_event(event: *const bindings::rdma_cm_event) -> Self {
        // SAFETY: By the contract, the event has the parameters of datagrams.
        let told = unsafe { &(*event).param.ud };
        // SAFETY: By the contract, so many bytes of the event are there.
        unsafe { Self::with_data(told.private_data, told.private_data_len) }
    }

    /// # Safety
    ///
    /// `data` must be valid for reads of `length` bytes, or null.
    unsafe fn with_data(data: *const c_void, length: u8) -> Self {
        let mut peer = Self::SILENT;
        if data.is_null() {
            return peer;
        }
        // SAFETY: By the contract.
        let data = unsafe { core::slice::from_raw_parts(data.cast::<u8>(), length.into()) };
        for (to, from) in peer.private_data.iter_mut().zip(data) {
            *to = *from;
        }
        peer.length = data.len().min(RECEIVED);
        peer
    }

    /// The private data as it was received. InfiniBand and RoCE do not carry its
    /// length: a request brings 56 bytes and an acceptance 196, filled up with
    /// zeroes. At most 196 bytes are kept.
    pub fn private_data(&self) -> &[u8] {
        self.private_data.get(..self.length).unwrap_or_default()
    }
}
