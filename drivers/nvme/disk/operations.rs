// SPDX-License-Identifier: GPL-2.0

//! The callbacks of the block layer: the command of a request, its submission or rejection.

use crate::{
    hctx::HctxQueue,
    ns_disk::{
        self,
        NsDisk, //
    },
    pdu::RequestPdu,
    Io,
    Queue, //
};
use kernel::{prelude::*, sync::Arc};
use nvme_proto::format::{
    dsm,
    sqe::{
        BlockCount,
        BlockRange,
        Command,
        Deallocate,
        Direction,
        Protection,
        RwFlags, //
    },
};
use nvme_rdma_transport::{
    queue::{
        Doorbell,
        Submission, //
    },
    ulp::DataCommand,
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
    rdma::{
        dma,
        qp::QueuePair, //
    },
    scatter::Buffer,
    sync::{rcu_read, RcuSection},
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

    fn new_request_data(_hctxs: &KVec<Arc<HctxQueue>>, _queue: u32) -> impl PinInit<RequestPdu> {
        RequestPdu::new()
    }

    #[inline]
    fn queue_rq(
        hctx: &Arc<HctxQueue>,
        disk: &NsDisk,
        request: Request<Self>,
        last: bool,
        section: &RcuSection,
    ) -> Result<(), Refused<Self>> {
        let Some(queue) = hctx.queue.read(section) else {
            return without_queue(disk, request);
        };
        let doorbell = Doorbell::from_last(last);
        match read_or_write(disk, request) {
            Ok(submission) => Queue::submit(&queue, section, submission, doorbell),
            Err(request) => queue_other(section, &queue, disk, request, doorbell),
        }
    }

    #[inline(always)]
    fn queue_rqs(
        hctx: &Arc<HctxQueue>,
        disk: &NsDisk,
        requests: impl Iterator<Item = Request<Self>>,
        section: &RcuSection,
    ) {
        let Some(queue) = hctx.queue.read(section) else {
            return;
        };
        let submissions = requests.filter_map(|request| {
            read_or_write(disk, request)
                .map_err(|request| queue_other_of_many(section, &queue, disk, request))
                .ok()
        });
        Queue::submit_all(&queue, section, submissions);
    }

    fn commit_rqs(hctx: &Arc<HctxQueue>, section: &RcuSection) {
        if let Some(queue) = hctx.queue.read(section) {
            Queue::ring(&queue, section);
        }
    }

    fn ioctl(call: Ioctl<'_, Self>) -> Result<c_int> {
        // The controller may release the disk of the call before it has handled the call.
        let controller = call.data().controller.clone();
        controller.ioctl(call)
    }

    fn poll(hctx: &Arc<HctxQueue>) -> u32 {
        rcu_read(|section| {
            let queue = hctx.queue.read(section);
            queue.map_or(0, |queue| queue.context().poll())
        })
    }

    fn timeout(hctx: &Arc<HctxQueue>, request: &RequestRef<Self>) -> TimeoutAction {
        if request.data().is_held() {
            return TimeoutAction::ResetTimer;
        }
        if hctx.poll_timed_out(request) {
            return TimeoutAction::Done;
        }
        rcu_read(|section| {
            let queue = hctx.queue.read(section);
            let queue = queue.as_ref().map(|queue| queue.context());
            if queue.is_some_and(|queue| hctx.is_kept(queue, request)) {
                // The end of its connection has logged it.
                return;
            }
            request.data().set_timed_out();
            // Without a queue, teardown has begun already.
            if let Some(queue) = queue {
                queue.report_timeout(request.tag());
            }
        });
        // The device may still access the memory of the request, so only teardown can end it.
        TimeoutAction::ResetTimer
    }
}

/// Starts a request, and returns the command of a plain read or write; any other request as the error.
///
/// All code of a read or write between the block layer and the send queue is inlined, so that the
/// command is built in place.
#[inline(always)]
fn read_or_write(
    disk: &NsDisk,
    request: Request<Io>,
) -> Result<Submission<DataCommand, RequestPayload<Io>>, Request<Io>> {
    request.start();
    if disk.state.is_unusual() {
        return Err(request);
    }
    let (transfer, direction) = match request.op() {
        Op::Read => (Direction::FromTarget, dma::Direction::FromDevice),
        Op::Write => (Direction::ToTarget, dma::Direction::ToDevice),
        _ => return Err(request),
    };
    let Some(range) = range(disk, &request) else {
        return Err(request);
    };
    let flags = rw_flags(&request, Protection::None);
    Ok(Submission {
        tag: request.tag(),
        command: DataCommand {
            command: Command::transfer(transfer, disk.wwid.nsid, range, flags),
            direction,
            length: request.bytes(),
        },
        payload: RequestPayload::new(request, None),
    })
}

/// Holds or rejects a request while there is no connection.
#[cold]
#[inline(never)]
fn without_queue(disk: &NsDisk, request: Request<Io>) -> Result<(), Refused<Io>> {
    let is_final = request.no_retry() || request.is_disk_dying() || disk.state.is_gone();
    if is_final || !disk.controller.holds_io() {
        return Err(reject(request, Status::Transport));
    }
    request.data().end_path_error_time();
    request.hold();
    Ok(())
}

/// Returns the blocks of a request; `None` if a command cannot have this number of blocks.
#[inline]
fn range(disk: &NsDisk, request: &Request<Io>) -> Option<BlockRange> {
    let blocks = disk.blocks_of_bytes(request.bytes());
    Some(BlockRange {
        start: disk.blocks_of_sectors(request.sector()),
        count: BlockCount::new(blocks)?,
    })
}

/// Returns the flags of a read or write.
#[inline]
fn rw_flags(request: &Request<Io>, protection: Protection) -> RwFlags {
    RwFlags {
        force_unit_access: request.is_fua(),
        limited_retry: request.no_retry(),
        protection,
    }
}

/// Returns the command of a request that is no plain read or write, and its data unless the
/// pages of the request hold it.
///
/// # Errors
///
/// The status to reject the request with: [`Status::NotSupported`] for an unknown operation,
/// [`Status::Resource`] if out of memory, [`Status::IoError`] if the namespace is gone.
#[inline(never)]
fn other(disk: &NsDisk, request: &Request<Io>) -> Result<(Command, Option<Buffer>), Status> {
    if disk.state.is_gone() {
        return Err(Status::IoError);
    }
    let nsid = disk.wwid.nsid;
    let transfer = |direction| {
        let range = range(disk, request).ok_or(Status::IoError)?;
        let flags = rw_flags(request, disk.protection);
        Ok((Command::transfer(direction, nsid, range, flags), None))
    };
    Ok(match request.op() {
        Op::Read => return transfer(Direction::FromTarget),
        Op::Write => return transfer(Direction::ToTarget),
        Op::Flush => (Command::flush(nsid), None),
        Op::WriteZeroes => {
            let deallocate = if disk.deallocate_zeroes.get() && !request.no_unmap() {
                Deallocate::Allowed
            } else {
                Deallocate::Forbidden
            };
            let range = range(disk, request).ok_or(Status::IoError)?;
            let protection = disk.protection;
            let command = Command::write_zeroes(nsid, range, deallocate, protection);
            (command, None)
        }
        Op::Discard => {
            let (payload, count) = discard_ranges(disk, request)?;
            (Command::deallocate(nsid, count), Some(payload))
        }
        Op::DriverIn | Op::DriverOut => {
            let command = request.data().passthru.command();
            (command.ok_or(Status::IoError)?, None)
        }
        _ => return Err(Status::NotSupported),
    })
}

/// Queues a request that is no plain read or write.
#[inline(never)]
fn queue_other(
    section: &RcuSection,
    queue: &QueuePair<Queue>,
    disk: &NsDisk,
    request: Request<Io>,
    doorbell: Doorbell,
) -> Result<(), Refused<Io>> {
    let (command, payload) = match other(disk, &request) {
        Ok(other) => other,
        Err(status) => return Err(reject(request, status)),
    };
    let submission = Submission {
        tag: request.tag(),
        command: DataCommand {
            command,
            direction: match request.op() {
                Op::Read | Op::DriverIn => dma::Direction::FromDevice,
                _ => dma::Direction::ToDevice,
            },
            length: match &payload {
                Some(payload) => u32::try_from(payload.bytes().len()).unwrap_or(u32::MAX),
                None => request.bytes(),
            },
        },
        payload: RequestPayload::new(request, payload),
    };
    Queue::submit(queue, section, submission, doorbell)
}

/// Queues a request of several that is no plain read or write.
#[cold]
#[inline(never)]
fn queue_other_of_many(
    section: &RcuSection,
    queue: &QueuePair<Queue>,
    disk: &NsDisk,
    request: Request<Io>,
) {
    if let Err(refused) = queue_other(section, queue, disk, request, Doorbell::Ring) {
        refused.finish();
    }
}

/// Returns the data of a discard, and the number of ranges in it.
fn discard_ranges(
    disk: &NsDisk,
    request: &Request<Io>,
) -> Result<(Buffer, dsm::RangeCount), Status> {
    // The block layer retries requests that fail with `Status::Resource`.
    let mut payload = Buffer::new(dsm::PAYLOAD_SIZE, GFP_ATOMIC).map_err(|_| Status::Resource)?;
    let block: &mut [u8; dsm::PAYLOAD_SIZE] = payload
        .bytes_mut()
        .try_into()
        .map_err(|_| Status::IoError)?;
    let ranges = request.ranges().map(|range| dsm::DsmRange {
        start: disk.blocks_of_sectors(range.sector),
        count: u32::try_from(disk.blocks_of_sectors(range.sectors.into())).unwrap_or(u32::MAX),
    });
    let count = dsm::encode(block, ranges).ok_or(Status::IoError)?;
    Ok((payload, count))
}

/// Rejects a request. Resets its private data for the tag's next request, unless the block layer
/// retries the request.
#[cold]
fn reject(request: Request<Io>, status: Status) -> Refused<Io> {
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
