// SPDX-License-Identifier: GPL-2.0

//! Callbacks of the transport crate: completion and rejection of requests of nvme-core.

use crate::association::Recovery;
use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};
use nvme_core::{
    Refusal,
    Refused,
    Request,
    WeakController, //
};
use nvme_proto::format::{
    cid::{
        CommandId,
        Tag, //
    },
    cqe::Completion,
    sqe::{
        Command,
        IoOp, //
    },
};
use nvme_rdma_transport::{
    trace::{
        EndedCommand,
        QueueId,
        QueuedCommand, //
    },
    ulp::{
        Entry,
        Ulp, //
    },
};
use rrdma::{
    errno,
    rdma::{
        cm,
        dma::Direction, //
    },
};

/// Requests of nvme-core.
pub(crate) struct CoreRequests;

/// The command that nvme-core has set up in a request.
pub(crate) struct CoreCommand;

impl Entry<Request> for CoreCommand {
    #[inline(always)]
    fn io_op(&self, _qid: u16) -> IoOp {
        IoOp::Other
    }

    #[inline(always)]
    fn direction(&self, request: &Request) -> Direction {
        match request.is_write() {
            true => Direction::ToDevice,
            false => Direction::FromDevice,
        }
    }

    #[inline(always)]
    fn length(&self, request: &Request) -> u32 {
        request.length()
    }

    #[inline(always)]
    fn write(&self, request: &Request, id: CommandId, entry: &mut [u8; Command::SIZE]) {
        Command::copy_of_core(request.command(), id, entry);
    }
}

impl Ulp for CoreRequests {
    type Payload = Request;
    type Rejected = Refused;
    type Command = CoreCommand;
    type Stats = ();
    type QueueData = Arc<WeakController>;
    type Wake = Recovery;

    const OWNER: &'static CStr = c"nvme_rdma_rust";

    #[inline(always)]
    fn complete(
        _controller: &Arc<WeakController>,
        _stats: &(),
        completion: Completion,
        request: Request,
    ) {
        request.end(completion.status().get(), completion.result);
    }

    fn async_event(controller: &Arc<WeakController>, completion: &Completion) {
        controller.complete_async_event(completion.status().get(), completion.result);
    }

    #[cold]
    fn reject(error: Error, request: Request) -> Refused {
        request.refuse(match error {
            EBUSY | ENOMEM | EAGAIN => Refusal::Busy,
            error if error == EIO || error == errno::ENOTCONN => Refusal::NoPath,
            _ => Refusal::Invalid,
        })
    }

    fn finish(controller: &Arc<WeakController>, refused: Refused) {
        refused.finish(controller);
    }

    // nvme-core counts retries, and has tracepoints of its own.
    #[inline]
    fn retries(_request: &Request) -> u64 {
        0
    }

    #[inline]
    fn trace_queued(_record: impl FnOnce() -> QueuedCommand) {}

    #[inline]
    fn trace_ended(_record: impl FnOnce() -> EndedCommand) {}

    fn trace_cm_event(_queue: QueueId, _event: cm::Event) {}

    #[cold]
    fn log_kept_by_device(queue: QueueId, tag: Tag) {
        pr_err!(
            "nvme{}: command {} on queue {}: never completed by the RDMA device: cannot end its request\n",
            queue.ctrl_id,
            tag.get(),
            queue.qid
        );
    }
}
