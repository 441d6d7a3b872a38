// SPDX-License-Identifier: GPL-2.0

//! Private data of the RDMA connection manager's messages.

use crate::format::layout::{Reader, Writer};
use core::fmt;

/// The only record format there is.
const FORMAT: u16 = 0;

/// What a host asks for with a queue: private data of the connection request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CmRequest {
    /// The queue: 0 for the admin queue.
    pub queue_id: u16,
    /// Responses that the host has receives for.
    pub receive_queue_size: u16,
    /// Size of the submission queue, less one.
    pub send_queue_size: u16,
    /// The controller, for I/O queues; 0 for the admin queue.
    pub controller_id: u16,
}

impl CmRequest {
    /// Size in bytes.
    pub const SIZE: usize = 32;

    /// Makes the private data.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut data = [0; Self::SIZE];
        let mut block = Writer::over(&mut data);
        block.put::<0, 2>(FORMAT.to_le_bytes());
        block.put::<2, 2>(self.queue_id.to_le_bytes());
        block.put::<4, 2>(self.receive_queue_size.to_le_bytes());
        block.put::<6, 2>(self.send_queue_size.to_le_bytes());
        block.put::<8, 2>(self.controller_id.to_le_bytes());
        data
    }

    /// Reads the private data; the error is what to reject the request with.
    pub fn parse(data: &[u8]) -> Result<Self, CmStatus> {
        let fields = Reader::<{ Self::SIZE }>::new(data).ok_or(CmStatus::InvalidLength)?;
        if fields.u16::<0>() != FORMAT {
            return Err(CmStatus::InvalidFormat);
        }
        Ok(Self {
            queue_id: fields.u16::<2>(),
            receive_queue_size: fields.u16::<4>(),
            send_queue_size: fields.u16::<6>(),
            controller_id: fields.u16::<8>(),
        })
    }
}

/// What a target grants: private data of the connection reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CmReply {
    /// Commands that the controller has receives for.
    pub receive_queue_size: u16,
}

impl CmReply {
    /// Size in bytes.
    pub const SIZE: usize = 32;

    /// Reads the private data; `None` where a target sent something else.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let fields = Reader::<{ Self::SIZE }>::new(data)?;
        (fields.u16::<0>() == FORMAT).then(|| Self {
            receive_queue_size: fields.u16::<2>(),
        })
    }
}

/// Why a target rejects a connection request.
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
    /// The target is short of something.
    NoResources,
    /// The host accepts too few or too many RDMA reads.
    InvalidReadsAccepted,
    /// The host starts too few or too many RDMA reads.
    InvalidReadsStarted,
    /// The controller identifier is not that of a controller of the host.
    InvalidControllerId,
    /// Something that this host does not know.
    Unknown(u16),
}

impl CmStatus {
    const SIZE: usize = 4;

    /// Reads the private data of a rejection; `None` where it is not from an
    /// NVMe target, but from the connection manager or something else.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let fields = Reader::<{ Self::SIZE }>::new(data)?;
        (fields.u16::<0>() == FORMAT).then(|| Self::from_wire(fields.u16::<2>()))
    }

    /// The reason's number.
    #[must_use]
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
            Self::NoResources => "target has no resources",
            Self::InvalidReadsAccepted => "invalid number of RDMA reads accepted",
            Self::InvalidReadsStarted => "invalid number of RDMA reads started",
            Self::InvalidControllerId => "invalid controller identifier",
            Self::Unknown(status) => return write!(f, "unknown reason {status:#x}"),
        })
    }
}

#[cfg(test)]
mod tests;
