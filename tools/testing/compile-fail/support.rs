// SPDX-License-Identifier: GPL-2.0

//! Code that several cases share: a consumer of verbs, and a driver of disks.

use kernel::prelude::*;
use rrdma::{
    block::{
        Operations,
        Refused,
        Request,
        RequestRef,
        Status,
        TimeoutAction, //
    },
    rdma::{
        cm::{
            Endpoint,
            Lost, //
        },
        cq::{
            Completion,
            WcError, //
        },
        dma::DmaBuffer,
        mr::Region,
        qp::{
            Fault,
            QpContext,
            QueuePair,
            Rc, //
        },
        wr::{
            Complete,
            Operation,
            Receive,
            Sge, //
        },
    },
    scatter::Buffer,
    sync::RcuSection,
};

/// The context of a queue pair.
pub(crate) struct Peer;

impl QpContext for Peer {
    type QpType = Rc;

    fn failed(_queue: &QueuePair<Self>, _failure: WcError) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}

impl Endpoint for Peer {
    fn lost(_queue: &QueuePair<Self>, _cause: Lost) {}
}

/// A message to send or receive.
pub(crate) struct Message {
    pub(crate) buffer: DmaBuffer,
}

impl Complete<Peer> for Message {
    fn complete(_: Operation<Self>, _: &QueuePair<Peer>, _: &Completion<'_>) {}
}

impl Receive<Peer> for Message {
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

/// Data that the peer may access.
pub(crate) struct Exposed {
    pub(crate) region: Region<Buffer>,
}

impl Complete<Peer> for Exposed {
    fn complete(_: Operation<Self>, _: &QueuePair<Peer>, _: &Completion<'_>) {}
}

/// A driver of disks that complete all requests without moving data.
pub(crate) struct Driver;

impl Operations for Driver {
    type SetData = ();
    type QueueData = ();
    type DiskData = ();
    type RequestData = ();

    fn new_queue(_set: &(), _index: u32) -> Result {
        Ok(())
    }

    fn new_request_data(_set: &(), _queue: u32) -> impl PinInit<()> {}

    fn queue_rq(
        _queue: &(),
        _disk: &(),
        request: Request<Self>,
        _last: bool,
        _section: &RcuSection,
    ) -> Result<(), Refused<Self>> {
        request.complete(Status::Ok);
        Ok(())
    }

    fn timeout(_queue: &(), _request: &RequestRef<Self>) -> TimeoutAction {
        TimeoutAction::ResetTimer
    }
}
