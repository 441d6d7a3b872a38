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
    sync::Msecs,
};

/// Requests of nvme-core.
pub(crate) struct CoreRequests;

/// What a queue has of its controller.
pub(crate) struct QueueData {
    pub(crate) controller: Arc<WeakController>,
    /// See [`Association`](crate::association::Association).
    pub(crate) quiesce_time: Msecs,
}

/// Status of a write that is not sent again on any path: a host path error, with the bit Do Not Retry. C:
/// `NVME_SC_HOST_PATH_ERROR | NVME_STATUS_DNR`.
const PATH_ERROR_FINAL: u16 = 0x4370;

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
    type QueueData = QueueData;
    type Wake = Recovery;

    const OWNER: &'static CStr = c"nvme_rdma_rust";

    #[inline(always)]
    fn complete(_queue: &QueueData, _stats: &(), completion: Completion, request: Request) {
        request.end(completion.status().get(), completion.result);
    }

    fn async_event(queue: &QueueData, completion: &Completion) {
        let controller = &queue.controller;
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

    fn finish(queue: &QueueData, refused: Refused) {
        refused.finish(&queue.controller);
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

    /// nvme-core sends the request again. If writes are held, a write fails instead: nobody holds it until the
    /// target has ended the old one, as the disconnect does.
    fn end_kept(queue: &QueueData, request: Request) {
        match request.is_write() && queue.quiesce_time > Msecs::new(0) {
            true => request.end(PATH_ERROR_FINAL, 0),
            false => request.cancel(),
        }
    }
}
