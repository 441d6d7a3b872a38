// SPDX-License-Identifier: GPL-2.0

//! Whether a target accepts a connection request, and the sizes of the queue.
//!
//! Source: NVMe RDMA Transport, «Connection Establishment».

use crate::format::{
    private_data::{CmRequest, CmStatus},
    sqe::Command,
    status::Code,
};

/// Entries of the admin queue, at most. C: `NVME_AQ_DEPTH`.
const ADMIN_QUEUE_SIZE: u16 = 32;

/// Commands in a submission queue that the specification allows at least.
const MIN_QUEUE_SIZE: u16 = 2;

/// Largest queue identifier. C: `NVMET_NR_QUEUES`.
const MAX_QUEUE_ID: u16 = 128;

/// Memory of the objects of a queue in bytes, whatever its size: queue pair, completion queue, thread. Measured with
/// soft-RoCE.
const QUEUE_MEMORY: u64 = 64 << 10;

/// Memory of an entry in bytes, without data in capsules: work requests, completions, the request.
const ENTRY_MEMORY: u64 = 6 << 10;

/// A connection request, as a target sees it.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// The private data of the request.
    pub private_data: &'a [u8],
    /// RDMA reads that the host accepts at once; `None` if the transport does not negotiate them.
    pub reads_accepted: Option<u8>,
    /// Entries of an I/O queue that the target allows.
    pub max_queue_size: u16,
}

/// What a device supports of the receives of its queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveSupport {
    /// It is an iWARP device, on which each host has a protection domain of its own.
    pub is_rnic: bool,
    /// Queue pairs can take receives from a shared queue.
    pub has_shared: bool,
}

/// The receives of the queues on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receives {
    /// Each queue has its own.
    Own,
    /// Each queue has its own, although they are to be shared: the device does not support that.
    Unsupported,
    /// The queues share this number of receives.
    Shared(u32),
}

impl Receives {
    /// Decides on the receives on a device, which are to be shared if `shared` is a number. On iWARP, receives of one
    /// protection domain cannot be those of a queue in another.
    pub fn decide(shared: Option<u32>, device: ReceiveSupport) -> Self {
        match shared {
            None => Self::Own,
            Some(_) if device.is_rnic => Self::Own,
            Some(_) if !device.has_shared => Self::Unsupported,
            Some(receives) => Self::Shared(receives),
        }
    }
}

/// The queue of an accepted request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AcceptedQueue {
    /// Queue identifier; 0 is the admin queue.
    pub queue_id: u16,
    /// Commands that the host may send before it gets a response.
    pub commands: u16,
    /// Responses that the host has receives for.
    pub responses: u16,
}

impl AcceptedQueue {
    /// Decides on a connection request.
    ///
    /// # Errors
    ///
    /// The reason to reject it with.
    pub fn decide(offer: Offer<'_>) -> Result<Self, CmStatus> {
        let request = CmRequest::parse(offer.private_data)?;
        let queue_id = request.queue.queue_id();
        if queue_id > MAX_QUEUE_ID {
            return Err(CmStatus::InvalidQueueId);
        }
        let max = match queue_id {
            0 => ADMIN_QUEUE_SIZE,
            _ => offer.max_queue_size,
        };
        // The size is zero-based.
        let size = request.send_queue_size.saturating_add(1);
        // The reply tells the host for how many commands there are receives. C: `nvmet_rdma_parse_cm_connect_req()`
        // refuses a larger admin queue, too.
        if size < MIN_QUEUE_SIZE || (queue_id == 0 && size > max) {
            return Err(CmStatus::InvalidSendQueueSize);
        }
        let commands = size.min(max);
        if request.receive_queue_size == 0 {
            return Err(CmStatus::InvalidReceiveQueueSize);
        }
        // Without RDMA reads the target cannot fetch the data of a write.
        if offer.reads_accepted == Some(0) {
            return Err(CmStatus::InvalidReadsAccepted);
        }
        Ok(Self {
            queue_id,
            commands,
            responses: request.receive_queue_size.min(commands),
        })
    }

    /// Returns an estimate of the memory of the queue, in bytes. A receive of an I/O queue has room for `in_capsule`
    /// bytes of data. Shared receives are not counted: they are there already.
    pub fn memory(&self, receives: Receives, in_capsule: u32) -> u64 {
        let data = match receives {
            Receives::Own | Receives::Unsupported if self.queue_id != 0 => in_capsule,
            _ => 0,
        };
        let entry = ENTRY_MEMORY.saturating_add(data.into());
        QUEUE_MEMORY.saturating_add(entry.saturating_mul(self.commands.into()))
    }

    /// Checks that a Connect command is for this queue, with a size that it has. Other commands pass.
    ///
    /// # Errors
    ///
    /// The status to answer the command with.
    #[inline]
    pub fn check_connect(&self, command: &Command) -> Result<(), Code> {
        if command.opcode() != Command::FABRICS {
            return Ok(());
        }
        self.check_fabrics(*command)
    }

    // By value, so that the compiler need not copy the entries of other commands to the stack.
    #[cold]
    fn check_fabrics(&self, command: Command) -> Result<(), Code> {
        match command.connect_params() {
            Some(connect) if connect.queue_id != self.queue_id => {
                Err(Code::CONNECT_INVALID_PARAMETER)
            }
            // The size is zero-based.
            Some(connect) if connect.sq_size == 0 || connect.sq_size >= self.commands => {
                Err(Code::CONNECT_INVALID_PARAMETER)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
