// SPDX-License-Identifier: GPL-2.0

//! The memory that a response is received into.

use super::Queue;
use kernel::prelude::*;
use nvme_proto::format::cqe;
use nvme_rdma_transport::conn_error::ConnError;
use rrdma::rdma::{
    cq::Completion,
    device::DeviceRef,
    dma::{
        Direction,
        DmaBuffer, //
    },
    qp::QueuePair,
    wr::{
        Complete,
        Operation,
        Receive,
        Sge, //
    },
};

/// A receive of one response; posted again as soon as it was read.
pub(super) struct Response {
    buffer: DmaBuffer,
}

impl Response {
    pub(super) fn new(device: DeviceRef) -> Result<Self> {
        Ok(Self {
            buffer: DmaBuffer::new(device, cqe::Completion::SIZE, Direction::FromDevice)?,
        })
    }
}

impl Receive<Queue> for Response {
    #[inline]
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

impl Complete<Queue> for Response {
    #[inline]
    fn complete(
        mut operation: Operation<Self>,
        queue: &QueuePair<Queue>,
        completion: &Completion<'_>,
    ) {
        let context = queue.context();
        context.stats.completed(completion);
        if let Err(failure) = completion.result() {
            return context.request_failed("receive", failure);
        }
        let received = completion.received();
        let length = received.map_or(0, |received| received.byte_len());
        let bytes = operation.buffer.read();
        match cqe::Completion::parse(bytes.get(..length).unwrap_or(bytes)) {
            Ok(response) => {
                let invalidation = received.and_then(|received| received.invalidation());
                context.answered(queue, response, invalidation)
            }
            Err(_) => context.report_error(ConnError::ShortResponse {
                qid: context.qid(),
                length,
            }),
        }
        operation.buffer.give_back();
        if let Err(unposted) = queue.post_receive(operation) {
            context.post_failed("receive", unposted.error);
        }
    }
}
