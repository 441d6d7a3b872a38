// SPDX-License-Identifier: GPL-2.0

//! Parameters and private data that the two sides of a connection exchange.

use super::{
    private_data::PrivateData,
    Cause,
    Error,
    Stage, //
};
use crate::{
    bindings,
    rdma::device::{
        Attributes,
        Device, //
    },
};
use core::ffi::c_void;

/// Bytes that the connection manager puts before the private data of a request (`struct cma_hdr`).
///
/// Source: InfiniBand Architecture Specification, volume 1, annex A11.
const REQUEST_HEADER: usize = 36;

/// Bytes of received private data that are kept: as many as an InfiniBand reply carries.
const RECEIVED: usize = bindings::ib_cm_data_size_IB_CM_REP_PRIVATE_DATA_SIZE as usize;

/// A message of the connection manager that carries private data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    Request,
    Acceptance,
    Rejection,
    ServiceRequest,
    ServiceReply,
}

impl Message {
    /// Returns how many bytes of private data the message carries.
    fn room(self, device: &Device) -> usize {
        if device.is_rnic() {
            // MPA carries more, but `private_data_len` of `rdma_conn_param` is one byte.
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

    /// Returns the length of `private_data`, or [`Cause::PrivateDataTooLong`].
    pub(super) fn length_of(self, private_data: &[u8], device: &Device) -> Result<u8, Cause> {
        let (length, room) = (private_data.len(), self.room(device));
        let fits = u8::try_from(length).ok().filter(|_| length <= room);
        fits.ok_or(Cause::PrivateDataTooLong { length, room })
    }
}

/// Parameters that one side sends with its request or its reply (`struct rdma_conn_param`).
#[derive(Clone, Copy)]
pub struct Parameters<'a> {
    /// Private data of the consumer. InfiniBand and RoCE carry 56 bytes in a request and 196 in a
    /// reply, iWARP carries 255 in either; more is an error.
    pub private_data: &'a [u8],
    /// RDMA reads and atomics that the peer may have outstanding towards us; 0 refuses them.
    /// Limited to what the device supports and, in a reply, to what the peer requests.
    pub responder_resources: u8,
    /// RDMA reads and atomics that we may have outstanding towards the peer; with 0,
    /// [`Chain::read`](crate::rdma::wr::Chain::read) fails. Limited in the same way.
    pub initiator_depth: u8,
    /// Retransmissions before the connection fails, at most 7. Not used in a reply: the value of
    /// the request applies to both sides.
    pub retry_count: u8,
    /// Retries of a send for which the peer has no receive posted, at most 7; 7 is for ever.
    pub rnr_retry_count: u8,
}

impl Default for Parameters<'_> {
    /// No private data, no RDMA reads or atomics, and the maximum number of retries.
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

/// Numbers of RDMA reads and atomics that may be outstanding on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RdAtomicLimits {
    /// Those of the peer, towards us.
    pub responder_resources: u8,
    /// Ours, towards the peer.
    pub initiator_depth: u8,
}

impl RdAtomicLimits {
    /// Returns what `parameters` request, limited to what the device supports.
    pub(super) fn new(parameters: &Parameters<'_>, device: &Attributes) -> Self {
        let limit = |wanted: u8, most: u32| u8::try_from(most).map_or(wanted, |m| wanted.min(m));
        Self {
            responder_resources: limit(parameters.responder_resources, device.max_qp_rd_atom),
            initiator_depth: limit(parameters.initiator_depth, device.max_qp_init_rd_atom),
        }
    }

    /// Limits the numbers to what the peer supports.
    pub(super) fn agreed(self, peer: &PeerParameters) -> Self {
        Self {
            responder_resources: self.responder_resources.min(peer.responder_resources),
            initiator_depth: self.initiator_depth.min(peer.initiator_depth),
        }
    }
}

impl Parameters<'_> {
    /// Converts the parameters for C. The result points to the private data, which `self` borrows.
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

/// Parameters that the peer sent with its request or its reply. They are not trustworthy: check
/// them before use.
#[derive(Clone, Copy)]
pub struct PeerParameters {
    private_data: PrivateData<RECEIVED>,
    /// RDMA reads and atomics that the peer wants to have outstanding towards us.
    pub responder_resources: u8,
    /// RDMA reads and atomics that the peer allows us to have outstanding.
    pub initiator_depth: u8,
    /// Retries of the peer's sends while we have no receive posted; 7 is for ever.
    pub rnr_retry_count: u8,
    /// Number of the peer's queue pair; 0 with iWARP.
    pub queue_pair: u32,
}

impl PeerParameters {
    /// The parameters of a peer that sent none.
    pub(super) const SILENT: Self = Self {
        private_data: PrivateData::EMPTY,
        responder_resources: 0,
        initiator_depth: 0,
        rnr_retry_count: 0,
        queue_pair: 0,
    };

    /// Copies the parameters of a connection event.
    ///
    /// # Safety
    ///
    /// `event` must be valid, and a connection request or an established connection.
    pub(super) unsafe fn from_event(event: *const bindings::rdma_cm_event) -> Self {
        // SAFETY: By the safety requirements, the event has connection parameters.
        let told = unsafe { &(*event).param.conn };
        Self {
            responder_resources: told.responder_resources,
            initiator_depth: told.initiator_depth,
            rnr_retry_count: told.rnr_retry_count,
            queue_pair: told.qp_num,
            // SAFETY: The private data of the event has this length, or is null.
            ..unsafe { Self::with_data(told.private_data, told.private_data_len) }
        }
    }

    /// Copies the private data of a datagram event.
    ///
    /// # Safety
    ///
    /// `event` must be valid, and a service query or the answer to one.
    pub(super) unsafe fn from_datagram_event(event: *const bindings::rdma_cm_event) -> Self {
        // SAFETY: By the safety requirements, the event has datagram parameters.
        let told = unsafe { &(*event).param.ud };
        // SAFETY: The private data of the event has this length, or is null.
        unsafe { Self::with_data(told.private_data, told.private_data_len) }
    }

    /// Returns parameters with this private data. The others are those of [`SILENT`](Self::SILENT).
    ///
    /// # Safety
    ///
    /// `data` must be valid for reads of `length` bytes, or null.
    unsafe fn with_data(data: *const c_void, length: u8) -> Self {
        // SAFETY: By the safety requirements of this function.
        let private_data = unsafe { PrivateData::copy(data, length) };
        Self {
            private_data: private_data.unwrap_or(PrivateData::EMPTY),
            ..Self::SILENT
        }
    }

    /// Returns the private data as received, at most 196 bytes.
    ///
    /// InfiniBand and RoCE do not transmit its length: a request has 56 bytes and a reply 196,
    /// padded with zeroes.
    pub fn private_data(&self) -> &[u8] {
        self.private_data.as_slice()
    }
}
