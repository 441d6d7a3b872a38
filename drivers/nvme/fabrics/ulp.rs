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
    cid::Tag,
    cqe::Completion, //
};
use nvme_rdma_transport::{
    stats::QueueStats,
    trace::{
        EndedCommand,
        QueueId,
        QueuedCommand, //
    },
    ulp::Ulp,
};
use rrdma::{
    errno,
    rdma::cm, //
};

/// Requests of nvme-core.
pub(crate) struct CoreRequests;

impl Ulp for CoreRequests {
    type Payload = Request;
    type Rejected = Refused;
    type QueueData = Arc<WeakController>;
    type Wake = Recovery;

    const OWNER: &'static CStr = c"nvme_rdma_rust";

    #[inline(always)]
    fn complete(
        _controller: &Arc<WeakController>,
        _stats: &QueueStats,
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

    fn finish(refused: Refused) {
        refused.finish();
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
