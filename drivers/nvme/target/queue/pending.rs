// SPDX-License-Identifier: GPL-2.0

//! Commands whose data is in the host's memory, until it is transferred.

use super::{
    data_transfer::DataTransfer,
    slots::put, //
};
use crate::rdma::Rdma;
use kernel::prelude::*;
use nvme_proto::format::status::Code;
use nvmet::{
    Data,
    Parsed,
    Sgl,
    TransportTypes, //
};
use rrdma::rdma::{
    mr::RemoteKey,
    qp::QueuePair,
    rw::RdmaRw, //
};

/// The context of the queue pair.
type Endpoint = <Rdma as TransportTypes>::Endpoint;

/// A command whose data is in the host's memory.
pub(super) struct Pending {
    pub(super) parsed: Parsed<Rdma>,
    pub(super) remote: RemoteKey,
    pub(super) transfer: DataTransfer,
}

impl Pending {
    /// Transfers the data if there are credits; returns itself otherwise. Sleeps.
    #[inline(always)]
    pub(super) fn attempt(mut self, queue: &QueuePair<Endpoint>) -> Result<(), Self> {
        // Before the data is allocated, so that the compiler need not keep the data on the stack.
        let Some(context) = self.parsed.private_mut().context.take() else {
            self.fail();
            return Ok(());
        };
        let sgl = match self.transfer.allocate(self.remote.length) {
            Ok(sgl) => sgl,
            Err(error) => {
                put(&mut self.parsed.private_mut().context, Some(context));
                self.cannot_transfer(queue, error);
                return Ok(());
            }
        };
        let unprepared = match self.transfer {
            DataTransfer::FromHost => match context.read(sgl, &self.remote) {
                Ok(read) => {
                    if let Err((parsed, read)) = self.parsed.read(queue, read) {
                        cannot_read(parsed, read);
                    }
                    return Ok(());
                }
                Err(unprepared) => unprepared,
            },
            _ => match context.write(sgl, &self.remote) {
                Ok(write) => {
                    self.parsed.execute(Data::Write(write));
                    return Ok(());
                }
                Err(unprepared) => unprepared,
            },
        };
        let context = Some(unprepared.context);
        put(&mut self.parsed.private_mut().context, context);
        if unprepared.error == EAGAIN {
            return Err(self);
        }
        self.cannot_transfer(queue, unprepared.error);
        Ok(())
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
    pub(super) fn fail(self) {
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
