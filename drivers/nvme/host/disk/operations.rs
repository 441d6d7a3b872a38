// SPDX-License-Identifier: GPL-2.0

//! The callbacks of the block layer.

use super::{
    command::{
        self,
        OtherCommand,
        RequestCommand, //
    },
    hctx::{
        HctxQueue,
        HctxSetData, //
    },
    ioctl,
    ns_disk::{
        self,
        NsDisk, //
    },
    pdu::RequestPdu,
    submit::{
        reject,
        submit, //
    },
    Io,
    Queue, //
};
use kernel::{
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
};
use nvme_proto::format::sqe::{
    Command,
    Direction, //
};
use nvme_rdma_transport::queue::Doorbell;
use rrdma::{
    block::{
        Ioctl,
        Op,
        Operations,
        Refused,
        Request,
        RequestRef,
        Status,
        TimeoutAction, //
    },
    rdma::{
        dma,
        qp::QueuePair, //
    },
    sysfs::Attribute,
};

impl Operations for Io {
    type SetData = HctxSetData;
    type QueueData = Arc<HctxQueue>;
    type DiskData = NsDisk;
    type RequestData = RequestPdu;

    const ATTRIBUTES: &'static [Attribute<NsDisk>] = ns_disk::ATTRIBUTES;

    fn new_queue(set: &HctxSetData, index: u32) -> Result<Arc<HctxQueue>> {
        let hctx = set.hctxs.get(usize::try_from(index)?);
        hctx.cloned().ok_or(EINVAL)
    }

    fn new_request_data(_set: &HctxSetData, _queue: u32) -> impl PinInit<RequestPdu, Error> {
        Ok(RequestPdu::new())
    }

    #[inline]
    fn queue_rq(
        hctx: &Arc<HctxQueue>,
        disk: &NsDisk,
        request: Request<Self>,
        last: bool,
        guard: &rcu::Guard,
    ) -> Result<(), Refused<Self>> {
        let Some(queue) = hctx.queue.read(guard) else {
            return Err(reject(request, Status::Transport));
        };
        let doorbell = Doorbell::from_last(last);
        if disk.gone.get() {
            return Err(reject(request, Status::IoError));
        }
        request.start();
        let (transfer, direction) = match request.op() {
            Op::Read => (Direction::FromTarget, dma::Direction::FromDevice),
            Op::Write => (Direction::ToTarget, dma::Direction::ToDevice),
            _ => return queue_other(guard, &queue, disk, request, doorbell),
        };
        let Some(range) = command::range(disk, &request) else {
            return Err(reject(request, Status::IoError));
        };
        let flags = command::rw_flags(&request);
        let command = RequestCommand {
            command: Command::transfer(transfer, disk.wwid.nsid, range, flags),
            direction,
            length: request.bytes(),
        };
        submit(guard, &queue, request, None, command, doorbell)
    }

    fn commit_rqs(hctx: &Arc<HctxQueue>, guard: &rcu::Guard) {
        if let Some(queue) = hctx.queue.read(guard) {
            Queue::ring(&queue);
        }
    }

    fn ioctl(call: Ioctl<'_, Self>) -> Result<c_int> {
        ioctl::ioctl(call)
    }

    fn poll(hctx: &Arc<HctxQueue>) -> u32 {
        let guard = rcu::read_lock();
        let queue = hctx.queue.read(&guard);
        queue.map_or(0, |queue| queue.context().poll())
    }

    fn timeout(hctx: &Arc<HctxQueue>, request: &RequestRef<Self>) -> TimeoutAction {
        if hctx.poll_timed_out(request) {
            return TimeoutAction::Done;
        }
        request.data().set_timed_out();
        let guard = rcu::read_lock();
        // Without a queue, teardown has begun already.
        if let Some(queue) = hctx.queue.read(&guard) {
            queue.context().report_timeout(request.tag());
        }
        // The device may still access the memory of the request, so only teardown can end it.
        TimeoutAction::ResetTimer
    }
}

/// Queues a request that is neither a read nor a write.
#[inline(never)]
fn queue_other(
    guard: &rcu::Guard,
    queue: &QueuePair<Queue>,
    disk: &NsDisk,
    request: Request<Io>,
    doorbell: Doorbell,
) -> Result<(), Refused<Io>> {
    match command::other(disk, &request) {
        Ok(OtherCommand { command, payload }) => {
            submit(guard, queue, request, payload, command, doorbell)
        }
        Err(status) => Err(reject(request, status)),
    }
}
