// SPDX-License-Identifier: GPL-2.0

//! The callbacks of the block layer.

use super::{
    command::{
        self,
        reject, //
    },
    hctx::HctxQueue,
    ioctl,
    ns_disk::{
        self,
        NsDisk, //
    },
    pdu::RequestPdu,
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
use nvme_rdma_transport::queue::{
    Doorbell,
    Submission, //
};
use rrdma::{
    block::{
        Ioctl,
        Op,
        Operations,
        Refused,
        Request,
        RequestPayload,
        RequestRef,
        Status,
        TimeoutAction, //
    },
    rdma::dma,
    sysfs::Attribute,
};

impl Operations for Io {
    type SetData = KVec<Arc<HctxQueue>>;
    type QueueData = Arc<HctxQueue>;
    type DiskData = NsDisk;
    type RequestData = RequestPdu;

    const ATTRIBUTES: &'static [Attribute<NsDisk>] = ns_disk::ATTRIBUTES;

    fn new_queue(hctxs: &KVec<Arc<HctxQueue>>, index: u32) -> Result<Arc<HctxQueue>> {
        let hctx = hctxs.get(usize::try_from(index)?);
        hctx.cloned().ok_or(EINVAL)
    }

    fn new_request_data(
        _hctxs: &KVec<Arc<HctxQueue>>,
        _queue: u32,
    ) -> impl PinInit<RequestPdu, Error> {
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
            _ => return command::queue_other(guard, &queue, disk, request, doorbell),
        };
        let Some(range) = command::range(disk, &request) else {
            return Err(reject(request, Status::IoError));
        };
        let flags = command::rw_flags(&request);
        // All code of a read or write between the block layer and the send queue is inlined, so
        // that the command is built in place.
        let submission = Submission {
            tag: request.tag(),
            command: Command::transfer(transfer, disk.wwid.nsid, range, flags),
            direction,
            length: request.bytes(),
            payload: RequestPayload::new(request, None),
        };
        Queue::submit(&queue, guard, submission, doorbell)
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
