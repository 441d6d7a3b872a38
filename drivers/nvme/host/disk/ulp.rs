// SPDX-License-Identifier: GPL-2.0

//! Callbacks of the transport.

use super::{
    completion,
    submit,
    Io,
    QueueData, //
};
use crate::trace;
use kernel::{
    prelude::*,
    str::CStr, //
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
    block::{
        Refused,
        RequestPayload, //
    },
    rdma::cm,
    sync::TimedCompletion,
};

impl Ulp for Io {
    type Payload = RequestPayload<Io>;
    type Rejected = Refused<Io>;
    type QueueData = QueueData;
    type Wake = TimedCompletion;

    const OWNER: &'static CStr = c"rnvmf";

    #[inline(always)]
    fn complete(
        queue: &QueueData,
        stats: &QueueStats,
        completion: Completion,
        payload: RequestPayload<Io>,
    ) {
        completion::complete(queue, stats, completion, payload.into_request());
    }

    #[cold]
    fn reject(error: Error, payload: RequestPayload<Io>) -> Refused<Io> {
        submit::reject_unposted(error, payload.into_request())
    }

    fn finish(rejected: Refused<Io>) {
        rejected.finish();
    }

    #[inline]
    fn retries(payload: &RequestPayload<Io>) -> u64 {
        payload.request().data().retries()
    }

    #[inline(always)]
    fn trace_queued(record: impl FnOnce() -> QueuedCommand) {
        trace::queue_command(record);
    }

    #[inline(always)]
    fn trace_ended(record: impl FnOnce() -> EndedCommand) {
        trace::complete_command(record);
    }

    fn trace_cm_event(queue: QueueId, event: cm::Event) {
        trace::cm_event(queue, event);
    }

    #[cold]
    fn log_kept_by_device(queue: QueueId, tag: Tag) {
        pr_err!(
            "rnvmf{}: command {} on queue {}: never completed by the RDMA device: cannot end its request\n",
            queue.ctrl_id,
            tag.get(),
            queue.qid
        );
    }
}
