// SPDX-License-Identifier: GPL-2.0

//! How a request is sent, or rejected.

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

/// Sends the command of a request on the queue. `payload` is its data, if the pages of the
/// request do not hold it.
///
/// Inlined into its caller, as all code between the block layer and the send queue of a read or
/// write: the command is then built where it is sent from.
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

/// Rejects a request. Unless the block layer sends it again, the request data of the tag is
/// reset for the tag's next request.
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
        // The device cannot map it, most often because other requests use up its mappings.
        EIO if !request.no_retry() && request.data().has_retries_left() => {
            request.data().count_retry();
            Status::Resource
        }
        EIO => Status::Transport,
        // The block layer holds requests back, or fails them, once the loss is handled.
        error if error == rrdma::errno::ENOTCONN && !request.no_retry() => Status::Resource,
        error if error == rrdma::errno::ENOTCONN => Status::Transport,
        _ => Status::IoError,
    };
    reject(request, status)
}
