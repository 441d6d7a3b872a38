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

/// Requests of one host that the target has not completed, at most. A host that never completes them
/// leaves room for others.
const MAX_REQUESTS_OF_HOST: usize = 128;

/// Established connections of one host without a controller, at most. A host that never sends a Connect
/// command gets no more memory of the target. As many as the I/O queues of four controllers: a host may
/// establish all before it sends a command.
const MAX_WITHOUT_CONTROLLER: usize = 512;

/// Connections of one host that end, at most. They end late if a disk does not complete their commands;
/// until then, the host gets no more memory of the target. More than the queues of a controller, so
/// that a host can connect again at once. C: `NVMET_RDMA_BACKLOG`, for all hosts.
const MAX_ENDING_OF_HOST: usize = 256;

/// Connections of a host for which the target works without serving it.
#[derive(Clone, Copy, Default, Debug)]
pub struct HostLoad {
    /// Requests that are not completed.
    pub requests: usize,
    /// Established connections on which no Connect command has succeeded.
    pub without_controller: usize,
    /// Connections that end.
    pub ending: usize,
}

impl HostLoad {
    /// Returns whether the host has as many connections without a controller as it may have.
    pub fn has_too_many_without_controller(self) -> bool {
        self.without_controller >= MAX_WITHOUT_CONTROLLER
    }

    /// Decides whether the target considers one more request of the host.
    ///
    /// # Errors
    ///
    /// The reason to reject it with.
    pub fn admit(self) -> Result<(), CmStatus> {
        let has_room = self.requests < MAX_REQUESTS_OF_HOST
            && !self.has_too_many_without_controller()
            && self.ending < MAX_ENDING_OF_HOST;
        match has_room {
            true => Ok(()),
            false => Err(CmStatus::NoResources),
        }
    }
}

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
