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
        AfterReceive,
        Operations,
        ReceiveBuffer,
        ReceivePieces,
        RepeatedReceive,
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
            queue.post_repeated_receive(response).map_err(|u| u.error)?;
        }
        Ok(())
    }
}

impl<Q: ResponseHandler> RepeatedReceive<Q> for Response {
    #[inline]
    fn pieces(&mut self) -> ReceivePieces<'_> {
        self.buffer.pieces()
    }

    #[inline]
    fn received(&mut self, queue: &QueuePair<Q>, completion: &Completion<'_>) -> AfterReceive {
        queue.context().core().stats.completed(completion);
        if let Err(failure) = completion.result() {
            failed(queue, failure);
            return AfterReceive::Drop;
        }
        // A longer message does not fit the buffer, so the device fails it.
        match completion.message() {
            Some(received) if received.byte_len() >= cqe::Completion::SIZE => {
                let completion = cqe::Completion::from_bytes(self.buffer.read());
                Q::response(queue, completion, received);
            }
            Some(received) => short(queue, received.byte_len()),
            // The buffer has an earlier response, perhaps with the identifier of a command in flight.
            None => written(queue),
        }
        AfterReceive::Post
    }

    fn not_posted(queue: &QueuePair<Q>, unposted: Unposted<Self>) {
        let core = queue.context().core();
        core.post_failed("receive", unposted.error);
    }
}

/// Reports a receive that failed.
#[cold]
#[inline(never)]
fn failed<Q: ResponseHandler>(queue: &QueuePair<Q>, failure: WcError) {
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
