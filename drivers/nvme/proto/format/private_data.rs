// SPDX-License-Identifier: GPL-2.0

//! Private data of the RDMA connection manager's messages.
//!
//! Source: NVMe RDMA Transport. C header: `include/linux/nvme-rdma.h`.

use crate::format::layout::{Reader, Writer};
use core::{fmt, num::NonZero};

/// Record format (RECFMT); the specification defines only this one.
const FORMAT: u16 = 0;

/// The queue that a connection request is for: its identifier (QID), and that of the controller (CNTLID).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CmQueue {
    /// The admin queue. An association begins with it, so there is no controller identifier yet.
    Admin,
    /// An I/O queue of a controller.
    Io {
        /// Queue identifier.
        queue_id: NonZero<u16>,
        /// Controller identifier that the target assigned to the association.
        controller_id: u16,
    },
}

impl CmQueue {
    /// Returns the queue with the identifier `queue_id`, of the association's controller if it is an I/O
    /// queue.
    pub const fn new(queue_id: u16, controller_id: u16) -> Self {
        match NonZero::new(queue_id) {
            Some(queue_id) => Self::Io {
                queue_id,
                controller_id,
            },
            None => Self::Admin,
        }
    }

    /// Returns the queue identifier; 0 is the admin queue.
    pub fn queue_id(self) -> u16 {
        match self {
            Self::Admin => 0,
            Self::Io { queue_id, .. } => queue_id.get(),
        }
    }

    /// Returns the controller identifier; 0 for the admin queue.
    fn controller_id(self) -> u16 {
        match self {
            Self::Admin => 0,
            Self::Io { controller_id, .. } => controller_id,
        }
    }
}

/// Private data of a connection request (REQ): a host's parameters of a queue.
///
/// C structure: `struct nvme_rdma_cm_req`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CmRequest {
    /// The queue (QID, CNTLID).
    pub queue: CmQueue,
    /// Receives that the host has for responses (HRQSIZE).
    pub receive_queue_size: u16,
    /// Size of the submission queue, zero-based (HSQSIZE).
    pub send_queue_size: u16,
}

impl CmRequest {
    /// Size in bytes.
    pub const SIZE: usize = 32;

    /// Returns the bytes of the private data.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut data = [0; Self::SIZE];
        let mut block = Writer::over(&mut data);
        block.put::<0, 2>(FORMAT.to_le_bytes());
        block.put::<2, 2>(self.queue.queue_id().to_le_bytes());
        block.put::<4, 2>(self.receive_queue_size.to_le_bytes());
        block.put::<6, 2>(self.send_queue_size.to_le_bytes());
        block.put::<8, 2>(self.queue.controller_id().to_le_bytes());
        data
    }

    /// Decodes the private data. The controller identifier of an admin queue is not read.
    ///
    /// # Errors
    ///
    /// The reason to reject the request with.
    pub fn parse(data: &[u8]) -> Result<Self, CmStatus> {
        let fields = Reader::<{ Self::SIZE }>::new(data).ok_or(CmStatus::InvalidLength)?;
        if fields.u16::<0>() != FORMAT {
            return Err(CmStatus::InvalidFormat);
        }
        Ok(Self {
            queue: CmQueue::new(fields.u16::<2>(), fields.u16::<8>()),
            receive_queue_size: fields.u16::<4>(),
            send_queue_size: fields.u16::<6>(),
        })
    }
}

/// Private data of a connection reply (REP).
///
/// C structure: `struct nvme_rdma_cm_rep`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CmReply {
    /// Receives that the controller has for commands (CRQSIZE).
    pub receive_queue_size: u16,
}

impl CmReply {
    /// Size in bytes.
    pub const SIZE: usize = 32;

    /// Returns the bytes of the private data.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut data = [0; Self::SIZE];
        let mut block = Writer::over(&mut data);
        block.put::<0, 2>(FORMAT.to_le_bytes());
        block.put::<2, 2>(self.receive_queue_size.to_le_bytes());
        data
    }

    /// Decodes the private data; `None` if it is too short or has another record format.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let fields = Reader::<{ Self::SIZE }>::new(data)?;
        (fields.u16::<0>() == FORMAT).then(|| Self {
            receive_queue_size: fields.u16::<2>(),
        })
    }
}

/// Reason why a target rejects a connection request.
///
/// C: `enum nvme_rdma_cm_status`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CmStatus {
    /// The request's private data is too short.
    InvalidLength,
    /// The request's record format is unknown.
    InvalidFormat,
    /// The queue identifier is out of range, or in use.
    InvalidQueueId,
    /// The host's send queue size is out of range.
    InvalidSendQueueSize,
    /// The host's receive queue size is out of range.
    InvalidReceiveQueueSize,
    /// The target is out of resources.
    NoResources,
    /// The number of RDMA reads that the host accepts (IRD) is out of range.
    InvalidReadsAccepted,
    /// The number of RDMA reads that the host starts (ORD) is out of range.
    InvalidReadsStarted,
    /// The controller identifier does not belong to a controller of the host.
    InvalidControllerId,
    /// Any other status.
    Unknown(u16),
}

impl CmStatus {
    /// Size in bytes of the private data.
    pub const SIZE: usize = 4;

    /// Returns the private data of a rejection (REJ).
    pub fn encode(self) -> [u8; Self::SIZE] {
        let mut data = [0; Self::SIZE];
        let mut block = Writer::over(&mut data);
        block.put::<0, 2>(FORMAT.to_le_bytes());
        block.put::<2, 2>(self.to_wire().to_le_bytes());
        data
    }

    /// Decodes the private data of a rejection (REJ); `None` if no NVMe target sent it, but for
    /// example the connection manager.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let fields = Reader::<{ Self::SIZE }>::new(data)?;
        (fields.u16::<0>() == FORMAT).then(|| Self::from_wire(fields.u16::<2>()))
    }

    /// Returns the status as a number.
    pub const fn to_wire(self) -> u16 {
        match self {
            Self::InvalidLength => 0x01,
            Self::InvalidFormat => 0x02,
            Self::InvalidQueueId => 0x03,
            Self::InvalidSendQueueSize => 0x04,
            Self::InvalidReceiveQueueSize => 0x05,
            Self::NoResources => 0x06,
            Self::InvalidReadsAccepted => 0x07,
            Self::InvalidReadsStarted => 0x08,
            Self::InvalidControllerId => 0x09,
            Self::Unknown(status) => status,
        }
    }

    const fn from_wire(status: u16) -> Self {
        match status {
            0x01 => Self::InvalidLength,
            0x02 => Self::InvalidFormat,
            0x03 => Self::InvalidQueueId,
            0x04 => Self::InvalidSendQueueSize,
            0x05 => Self::InvalidReceiveQueueSize,
            0x06 => Self::NoResources,
            0x07 => Self::InvalidReadsAccepted,
            0x08 => Self::InvalidReadsStarted,
            0x09 => Self::InvalidControllerId,
            _ => Self::Unknown(status),
        }
    }
}

impl fmt::Display for CmStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidLength => "invalid length of private data",
            Self::InvalidFormat => "invalid record format",
            Self::InvalidQueueId => "invalid queue identifier",
            Self::InvalidSendQueueSize => "invalid host send queue size",
            Self::InvalidReceiveQueueSize => "invalid host receive queue size",
            Self::NoResources => "target is out of resources",
            Self::InvalidReadsAccepted => "invalid number of accepted RDMA reads (IRD)",
            Self::InvalidReadsStarted => "invalid number of started RDMA reads (ORD)",
            Self::InvalidControllerId => "invalid controller identifier",
            Self::Unknown(status) => return write!(f, "unknown reason {status:#x}"),
        })
    }
}

#[cfg(test)]
mod tests;
