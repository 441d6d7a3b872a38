// SPDX-License-Identifier: GPL-2.0

//! Completion and retry of requests.

use super::{
    pdu::MAX_RETRIES,
    Io,
    QueueData, //
};
use nvme_proto::{
    format::{
        cqe::Completion,
        status, //
    },
    policy::{
        block_status::BlockStatus,
        retry::{
            Disposition,
            FailedCommand,
            RetryPolicy, //
        },
    },
};
use nvme_rdma_transport::stats::QueueStats;
use rrdma::{
    block::{
        Op,
        Request,
        Status, //
    },
    sync::Msecs,
};

/// Handles the response to a request: ends or requeues the request.
#[inline(always)]
pub(super) fn complete(
    queue: &QueueData,
    stats: &QueueStats,
    completion: Completion,
    request: Request<Io>,
) {
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

/// Ends a request, and resets its private data for the tag's next request.
#[inline]
pub(crate) fn end(request: Request<Io>, status: Status) {
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
    let ended = FailedCommand {
        status,
        retries,
        no_retry: request.no_retry() || request.is_disk_dying(),
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
