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
        Invalidation, //
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
        Sge, //
    },
};

/// A queue that handles responses.
pub(super) trait ResponseHandler: QueueContext {
    /// Handles a response. Softirq context.
    fn response(
        queue: &QueuePair<Self>,
        completion: cqe::Completion,
        invalidation: Option<Invalidation>,
    );
}

/// Receive of one response. It is posted again as soon as the response was read.
pub(super) struct Response {
    buffer: ReceiveBuffer,
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
        let core = queue.context().core();
        core.stats.completed(completion);
        if let Err(failure) = completion.result() {
            return core.request_failed("receive", failure);
        }
        let received = completion.received();
        let length = received.map_or(0, |received| received.byte_len());
        let bytes = operation.buffer.read();
        match cqe::Completion::parse(bytes) {
            // A longer message does not fit the buffer, so the device fails it.
            Some(completion) if length >= cqe::Completion::SIZE => {
                let invalidation = received.and_then(|received| received.invalidation());
                Q::response(queue, completion, invalidation)
            }
            _ => core.report(ConnError::ShortResponse {
                qid: core.qid(),
                length,
            }),
        }
        operation.buffer.give_back();
        if let Err(unposted) = queue.post_receive(operation) {
            core.post_failed("receive", unposted.error);
        }
    }
}
