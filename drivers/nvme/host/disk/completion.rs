// SPDX-License-Identifier: GPL-2.0

//! How a request ends, or is retried.

use super::{
    pdu::MAX_RETRIES,
    Io, //
};
use crate::queue::{
    Payload,
    Queue,
    Slot, //
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
use nvme_rdma_transport::trace::CommandSource;
use rrdma::{
    block::{
        Op,
        Request,
        RequestPayload,
        Status, //
    },
    sync::Msecs,
};

impl Payload for RequestPayload<Io> {
    const SOURCE: CommandSource = CommandSource::Request;

    #[inline]
    fn retries(&self) -> u64 {
        self.request().data().retries()
    }

    #[inline]
    fn slot(queue: &Queue, tag: u16) -> Option<&Slot<Self>> {
        queue.request_slot(tag)
    }

    #[inline(always)]
    fn deliver(queue: &Queue, completion: Completion, payload: Option<Self>) {
        let Some(carrier) = payload else {
            return;
        };
        let request = carrier.into_request();
        if matches!(request.op(), Op::DriverIn | Op::DriverOut) {
            request.data().passthru.complete(completion);
            return end(request, block_status(BlockStatus::of(completion.status())));
        }
        if completion.status().is_success() {
            end(request, Status::Ok);
        } else {
            end_or_retry(queue, completion.status(), request);
        }
    }
}

/// Ends a request; the request data of the tag is reset for the tag's next request.
#[inline]
pub(crate) fn end(request: Request<Io>, status: Status) {
    request.data().reset();
    request.complete(status);
}

/// Ends a request that failed, or has the block layer send it again.
#[cold]
fn end_or_retry(queue: &Queue, status: status::Status, request: Request<Io>) {
    let policy = RetryPolicy {
        max_retries: MAX_RETRIES,
        delays: queue.retry_delays(),
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
            queue.stats().retried();
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
