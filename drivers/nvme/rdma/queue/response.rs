// SPDX-License-Identifier: GPL-2.0

//! Receives of responses.

use super::queue_core::QueueContext;
use crate::{
    conn_error::ConnError,
    stats::Counters, //
};
use kernel::prelude::*;
use nvme_proto::format::cqe;
use rrdma::rdma::{
    cq::{
        Completion,
        Received,
        WcError, //
    },
    dma::{
        Direction,
        DmaBuffers, //
    },
    qp::QueuePair,
    wr::{
        Complete,
        Operation,
        Operations,
        Receive,
        ReceiveBuffer,
        ReceivePieces,
        Sge,
        Unposted, //
    },
};

/// A queue that handles responses.
pub(super) trait ResponseHandler: QueueContext {
    /// Handles a response. Softirq context.
    fn response(queue: &QueuePair<Self>, completion: cqe::Completion, received: Received<'_>);
}

/// Receive of one response. It is posted again as soon as the response was read.
pub(super) struct Response {
    buffer: ReceiveBuffer<{ cqe::Completion::SIZE }>,
}

impl Response {
    /// Posts `count` receives. Sleeps.
    pub(super) fn post_all<Q: ResponseHandler>(queue: &QueuePair<Q>, count: u16) -> Result {
        let (device, entries) = (queue.device().clone(), usize::from(count));
        let direction = Direction::FromDevice;
        let mut buffers =
            DmaBuffers::with_capacity(device, entries, cqe::Completion::SIZE, direction);
        let mut responses = Operations::with_capacity(entries);
        for _ in 0..count {
            let buffer = ReceiveBuffer::new(queue.protection_domain(), buffers.alloc()?)?;
            let response = responses.push(Self { buffer })?;
            queue.post_receive(response).map_err(|u| u.error)?;
        }
        Ok(())
    }
}

impl<Q: ResponseHandler> Receive<Q> for Response {
    #[inline]
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }

    #[inline]
    fn pieces(&mut self) -> Option<ReceivePieces<'_>> {
        Some(self.buffer.pieces())
    }
}

impl<Q: ResponseHandler> Complete<Q> for Response {
    #[inline]
    fn complete(mut operation: Operation<Self>, queue: &QueuePair<Q>, completion: &Completion<'_>) {
        queue.context().core().stats.completed(completion);
        if let Err(failure) = completion.result() {
            return failed(operation, queue, failure);
        }
        // A longer message does not fit the buffer, so the device fails it.
        match completion.message() {
            Some(received) if received.byte_len() >= cqe::Completion::SIZE => {
                let completion = cqe::Completion::from_bytes(operation.buffer.read());
                Q::response(queue, completion, received);
            }
            Some(received) => short(queue, received.byte_len()),
            // The buffer has an earlier response, perhaps with the identifier of a command in flight.
            None => written(queue),
        }
        if let Err(unposted) = queue.post_receive(operation) {
            not_posted(queue, unposted);
        }
    }
}

/// Drops a receive that failed.
#[cold]
#[inline(never)]
fn failed<Q: ResponseHandler>(_: Operation<Response>, queue: &QueuePair<Q>, failure: WcError) {
    queue.context().core().request_failed("receive", failure);
}

/// Reports a response that is too short.
#[cold]
#[inline(never)]
fn short<Q: ResponseHandler>(queue: &QueuePair<Q>, length: usize) {
    let core = queue.context().core();
    core.report(ConnError::ShortResponse {
        qid: core.qid(),
        length,
    });
}

/// Reports a receive without a response: an RDMA write consumed it.
#[cold]
#[inline(never)]
fn written<Q: ResponseHandler>(queue: &QueuePair<Q>) {
    let core = queue.context().core();
    core.report(ConnError::UnexpectedWrite { qid: core.qid() });
}

/// Drops a receive that could not be posted again.
#[cold]
#[inline(never)]
fn not_posted<Q: ResponseHandler>(queue: &QueuePair<Q>, unposted: Unposted<Response>) {
    let core = queue.context().core();
    core.post_failed("receive", unposted.error);
}
