// SPDX-License-Identifier: GPL-2.0

//! Submission and rejection of requests.

use super::{
    command::RequestCommand,
    Io,
    Queue, //
};
use kernel::{
    prelude::*,
    sync::rcu, //
};
use nvme_rdma_transport::queue::{
    Doorbell,
    Submission, //
};
use rrdma::{
    block::{
        Refused,
        Request,
        RequestPayload,
        Status, //
    },
    rdma::qp::QueuePair,
    scatter::Buffer,
};

/// Sends the command of a request on the queue. `payload` is its data, if the pages of the request
/// do not hold it.
///
/// Inlined into its caller, like all code of a read or write between the block layer and the send
/// queue, so that the command is built in place.
#[inline(always)]
pub(super) fn submit(
    guard: &rcu::Guard,
    queue: &QueuePair<Queue>,
    request: Request<Io>,
    payload: Option<Buffer>,
    command: RequestCommand,
    doorbell: Doorbell,
) -> Result<(), Refused<Io>> {
    let submission = Submission {
        tag: request.tag(),
        command: command.command,
        payload: RequestPayload::new(request, payload),
        direction: command.direction,
        length: command.length,
    };
    Queue::submit(queue, guard, submission, doorbell)
}

/// Rejects a request. Resets its private data for the tag's next request, unless the block layer
/// retries the request.
#[cold]
pub(super) fn reject(request: Request<Io>, status: Status) -> Refused<Io> {
    if !matches!(status, Status::Resource) {
        request.data().reset();
    }
    request.refuse(status)
}

/// Maps a post error to a block status, and rejects the request.
#[cold]
pub(super) fn reject_unposted(error: Error, request: Request<Io>) -> Refused<Io> {
    let status = match error {
        ENOMEM | EBUSY | EAGAIN => Status::Resource,
        // DMA mapping failed, most often because other requests use up the device's mappings.
        EIO if !request.no_retry() && request.data().has_retries_left() => {
            request.data().count_retry();
            Status::Resource
        }
        EIO => Status::Transport,
        // Retried until the lost connection is handled: then the block layer holds or fails
        // requests.
        error if error == rrdma::errno::ENOTCONN && !request.no_retry() => Status::Resource,
        error if error == rrdma::errno::ENOTCONN => Status::Transport,
        _ => Status::IoError,
    };
    reject(request, status)
}
