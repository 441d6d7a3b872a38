// SPDX-License-Identifier: GPL-2.0

//! Commands whose data is in the host's memory, until it is transferred.

use super::{
    data_transfer::DataTransfer,
    read_limit::ReadLimit,
    slots::{
        discard,
        put, //
    },
};
use crate::rdma::Rdma;
use kernel::prelude::*;
use nvme_proto::format::{
    sqe::Command,
    status::Code, //
};
use nvmet::{
    Begun,
    Data,
    Parsed,
    Sgl,
    Suspended,
    TransportTypes, //
};
use rrdma::rdma::{
    mr::RemoteKey,
    qp::QueuePair,
    rw::{
        RdmaRw,
        Refusal, //
    },
};

/// The context of the queue pair.
type Endpoint = <Rdma as TransportTypes>::Endpoint;

/// A command whose data is in the host's memory.
pub(super) struct Pending {
    parsed: Parsed<Rdma>,
    remote: RemoteKey,
    transfer: DataTransfer,
}

/// A command that waits for credits. nvmet does not know it: a command that it knows keeps its namespace.
pub(super) struct Waiting {
    suspended: Suspended<Rdma>,
    remote: RemoteKey,
}

/// How far the transfer of the data of a command is.
pub(super) enum TransferState {
    /// It has begun, or the command has failed.
    Begun,
    /// The command must wait for credits.
    Waits(Pending),
}

impl Waiting {
    /// Passes the command to nvmet again; `None` if nvmet refused it. Process context.
    #[cold]
    pub(super) fn resume(self, queue: &QueuePair<Endpoint>, queue_id: u16) -> Option<Pending> {
        match self.suspended.resume(queue) {
            Begun::Parsed(parsed) => {
                let command = Command::from_bytes(parsed.command());
                Some(Pending::new(&command, queue_id, parsed, self.remote))
            }
            Begun::Answered => None,
            Begun::Refused(request) => {
                discard(request);
                None
            }
        }
    }
}

impl Pending {
    /// Returns a command of queue `queue_id` whose data is in `remote`.
    pub(super) fn new(
        command: &Command,
        queue_id: u16,
        parsed: Parsed<Rdma>,
        remote: RemoteKey,
    ) -> Self {
        let is_whole = || !parsed.is_of_file() && parsed.data_length() == remote.length as usize;
        Self {
            transfer: DataTransfer::of(command, queue_id, is_whole),
            parsed,
            remote,
        }
    }

    /// Lets the command wait for credits. Any context.
    #[cold]
    pub(super) fn suspend(self) -> Waiting {
        Waiting {
            suspended: self.parsed.suspend(),
            remote: self.remote,
        }
    }

    /// Transfers the data if there are credits. `reads` are those of the queue. Sleeps.
    #[inline(always)]
    pub(super) fn begin(mut self, queue: &QueuePair<Endpoint>, reads: &ReadLimit) -> TransferState {
        // Before the data is allocated, so that the compiler need not keep the data on the stack.
        let Some(context) = self.parsed.private_mut().context.take() else {
            self.fail();
            return TransferState::Begun;
        };
        let sgl = match self.transfer.allocate(self.remote.length) {
            Ok(sgl) => sgl,
            Err(error) => {
                put(&mut self.parsed.private_mut().context, Some(context));
                self.cannot_transfer(queue, error);
                return TransferState::Begun;
            }
        };
        let unprepared = match self.transfer {
            DataTransfer::FromHost => match context.read(sgl, &self.remote) {
                Ok(read) => {
                    reads.begun();
                    if let Err((parsed, read)) = self.parsed.read(queue, read) {
                        reads.ended();
                        cannot_read(parsed, read);
                    }
                    return TransferState::Begun;
                }
                Err(unprepared) => unprepared,
            },
            _ => match context.write(sgl, &self.remote) {
                Ok(write) => {
                    self.parsed.execute(Data::Write(write));
                    return TransferState::Begun;
                }
                Err(unprepared) => unprepared,
            },
        };
        let context = Some(unprepared.context);
        put(&mut self.parsed.private_mut().context, context);
        match unprepared.refusal {
            Refusal::Busy => TransferState::Waits(self),
            Refusal::Failed(error) => {
                self.cannot_transfer(queue, error);
                TransferState::Begun
            }
        }
    }

    /// Ends the command because its data cannot be transferred.
    #[cold]
    fn cannot_transfer(self, queue: &QueuePair<Endpoint>, error: Error) {
        let length = self.remote.length;
        queue.context().log(fmt!(
            "{length} bytes of data not transferred: error {}",
            error.to_errno()
        ));
        self.fail();
    }

    /// Ends the command with an internal error.
    #[cold]
    fn fail(self) {
        self.parsed.fail(Code::INTERNAL_ERROR.get());
    }
}

/// Ends a command whose RDMA READ cannot be posted.
#[cold]
fn cannot_read(mut parsed: Parsed<Rdma>, read: Option<RdmaRw<Sgl, Endpoint>>) {
    if let Some(read) = read {
        parsed.private_mut().give_up(read);
    }
    parsed.fail(Code::DATA_TRANSFER_ERROR.get());
}
