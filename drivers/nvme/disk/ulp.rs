// SPDX-License-Identifier: GPL-2.0

//! Callbacks of the transport: completion, rejection and retry of requests.

use crate::{
    operations,
    pdu::MAX_RETRIES,
    trace,
    Io,
    QueueData, //
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};
use nvme_proto::{
    format::{
        cid::Tag,
        cqe::Completion,
        status, //
    },
    policy::{
        block_status::BlockStatus,
        retry::{
            Disposition,
            FailedCommand,
            PathErrorTime,
            RetryPolicy, //
        },
    },
};
use nvme_rdma_transport::{
    stats::QueueStats,
    trace::{
        EndedCommand,
        QueueId,
        QueuedCommand, //
    },
    ulp::{
        DataCommand,
        Ulp, //
    },
};
use rrdma::{
    block::{
        Op,
        Refused,
        Request,
        RequestPayload,
        Status, //
    },
    rdma::cm,
    sync::{
        Msecs,
        TimedCompletion, //
    },
};

impl Ulp for Io {
    type Payload = RequestPayload<Io>;
    type Rejected = Refused<Io>;
    type Command = DataCommand;
    type Stats = Arc<QueueStats>;
    type QueueData = QueueData;
    type Wake = TimedCompletion;

    const OWNER: &'static CStr = c"rnvmf";

    #[inline(always)]
    fn complete(
        queue: &QueueData,
        stats: &Arc<QueueStats>,
        completion: Completion,
        payload: RequestPayload<Io>,
    ) {
        let request = payload.into_request();
        if matches!(request.op(), Op::DriverIn | Op::DriverOut) {
            request.data().passthru.complete(completion);
            return end(request, block_status(BlockStatus::of(completion.status())));
        }
        if completion.status().is_success() {
            end(request, Status::Ok);
        } else {
            end_or_retry(queue, stats, completion.status(), request);
        }
    }

    #[cold]
    fn reject(error: Error, payload: RequestPayload<Io>) -> Refused<Io> {
        operations::reject_unposted(error, payload.into_request())
    }

    fn finish(_queue: &QueueData, rejected: Refused<Io>) {
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

    /// Sends the request again, unless it is a write. Nobody holds it until the target has ended the old one, as
    /// the teardown of a connection does: so a write fails.
    fn end_kept(_queue: &QueueData, payload: RequestPayload<Io>) {
        let request = payload.into_request();
        match request.is_write() || request.no_retry() {
            true => end(request, Status::Transport),
            false => request.requeue(None),
        }
    }
}

/// Ends a request, and resets its private data for the tag's next request.
#[inline]
pub fn end(request: Request<Io>, status: Status) {
    request.data().reset();
    request.complete(status);
}

/// Ends or requeues a request that failed.
#[cold]
fn end_or_retry(
    queue: &QueueData,
    stats: &QueueStats,
    status: status::Status,
    request: Request<Io>,
) {
    let policy = RetryPolicy {
        max_retries: MAX_RETRIES,
        delays: queue.retry_delays,
    };
    let retries = u8::try_from(request.data().retries()).unwrap_or(u8::MAX);
    let path = match status.code().is_path_related() {
        true => {
            let limit = request.disk_data().controller.path_retry_limit();
            request.data().path_error_time(limit)
        }
        false => PathErrorTime::default(),
    };
    let ended = FailedCommand {
        status,
        retries,
        no_retry: request.no_retry() || request.is_disk_dying(),
        path,
    };
    match policy.decide(ended) {
        Disposition::Complete => {
            request.disk_data().log_failure(&request, status, retries);
            end(request, block_status(BlockStatus::of(status)));
        }
        Disposition::Retry { delay_ms } => {
            request.data().count_retry();
            stats.retried();
            request.requeue((delay_ms != 0).then(|| Msecs::new(delay_ms)));
        }
        Disposition::RetryPath { delay_ms } => {
            if path.since_ms == 0 {
                let disk = request.disk_data();
                let name = disk.name.as_str();
                disk.controller.log_path_error(name, status, path.limit_ms);
            }
            stats.retried();
            request.requeue(Some(Msecs::new(delay_ms)));
        }
    }
}

fn block_status(status: BlockStatus) -> Status {
    match status {
        BlockStatus::Ok => Status::Ok,
        BlockStatus::NoSpace => Status::NoSpace,
        BlockStatus::Target => Status::Target,
        BlockStatus::NotSupported => Status::NotSupported,
        BlockStatus::Medium => Status::Medium,
        BlockStatus::Protection => Status::Protection,
        BlockStatus::ReservationConflict => Status::Reservation,
        BlockStatus::Transport => Status::Transport,
        _ => Status::IoError,
    }
}
