// SPDX-License-Identifier: GPL-2.0

//! The block layer's requests as NVMe commands.

use crate::{
    controller::Controller,
    error_notifier::ConnError,
    name::disk_name,
    passthru::disk::{
        self,
        PassthruCmd, //
    },
    queue::{
        Payload,
        Queue,
        Slot, //
    },
    sysfs, //
};
use core::fmt;
use kernel::{
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
};
use nvme_proto::{
    format::{
        cqe, dsm,
        identify::Wwid,
        sqe::{
            BlockCount,
            BlockRange,
            Command,
            Direction,
            RwFlags, //
        },
    },
    policy::{
        block_status::BlockStatus,
        limits::queue_counts::IoQueueCounts,
        retry::{
            Disposition,
            RetryPolicy, //
        },
    },
};
use rrdma::{
    block::{
        Carrier,
        Ioctl,
        Op,
        Operations,
        QueueCounts,
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
    scatter::Buffer,
    sync::{
        Counter,
        Flag,
        Msecs,
        Published, //
    },
    sysfs::Attribute,
};

/// A sector of the block layer, as a power of two.
const SECTOR_SHIFT: u32 = 9;

/// Attempts beyond the first, as the C host makes them, of a request that the target wants to come
/// again, or does not answer.
const MAX_RETRIES: u8 = 5;

/// The disks of one controller.
pub(crate) struct Io;

/// What all queues of the disks share.
pub(crate) struct HctxSetData {
    pub(crate) places: HctxQueues,
}

/// A place for each hardware queue.
pub(crate) type HctxQueues = KVec<Arc<HctxQueue>>;

/// Where a hardware queue finds its queue pair, while there is one.
#[derive(Default)]
pub(crate) struct HctxQueue {
    pub(crate) queue: Published<QueuePair<Queue>>,
}

/// What a request needs to know of its namespace, and what the disk shows of it.
pub(crate) struct NsDisk {
    /// Which namespace it is; its number is in every command.
    pub(crate) wwid: Wwid,
    /// Size of a block, as a power of two.
    pub(crate) shift: u8,
    /// Blocks that were deallocated read as zeroes.
    pub(crate) deallocate_zeroes: Flag,
    /// The target has another namespace in this one's place, or none.
    pub(crate) gone: Arc<Flag>,
    /// The disk goes before the controller does.
    pub(crate) controller: Arc<Controller>,
}

/// What we keep with a request.
pub(crate) struct RequestPdu {
    /// Nobody but who has the request changes it.
    retries: Counter,
    /// Its time was over. Left to the next request of the tag if it ends all the same, which then
    /// may come again once less.
    timed_out: Flag,
    pub(crate) passthru: PassthruCmd,
}

impl RequestPdu {
    /// How often the request was sent before.
    #[inline]
    fn retries(&self) -> u64 {
        self.retries.get()
    }

    /// Whether it may come again, when its connection has ended: that is an attempt of its own
    /// only if it was not answered.
    pub(crate) fn may_come_again(&self) -> bool {
        if self.timed_out.get() {
            self.timed_out.set(false);
            self.retries.add(1);
        }
        self.retries() <= MAX_RETRIES.into()
    }
}

impl Operations for Io {
    type SetData = HctxSetData;
    type QueueData = Arc<HctxQueue>;
    type DiskData = NsDisk;
    type RequestData = RequestPdu;

    const ATTRIBUTES: &'static [Attribute<NsDisk>] = sysfs::DISK;

    fn new_queue(set: &HctxSetData, index: u32) -> Result<Arc<HctxQueue>> {
        let place = set.places.get(usize::try_from(index)?);
        place.cloned().ok_or(EINVAL)
    }

    fn new_request_data(_set: &HctxSetData, _queue: u32) -> impl PinInit<RequestPdu, Error> {
        Ok(RequestPdu {
            retries: Counter::new(),
            timed_out: Flag::new(false),
            passthru: PassthruCmd::new(),
        })
    }

    #[inline]
    fn queue_rq(
        place: &Arc<HctxQueue>,
        blocks: &NsDisk,
        request: Request<Self>,
        last: bool,
        guard: &rcu::Guard,
    ) -> Result<(), Refused<Self>> {
        let Some(queue) = place.queue.read(guard) else {
            return Err(reject(request, Status::Transport));
        };
        if blocks.gone.get() {
            return Err(reject(request, Status::IoError));
        }
        request.start();
        let (direction, way) = match request.op() {
            Op::Read => (Direction::FromTarget, dma::Direction::FromDevice),
            Op::Write => (Direction::ToTarget, dma::Direction::ToDevice),
            _ => return blocks.queue_other(guard, &queue, request, last),
        };
        let Some(range) = blocks.range(&request) else {
            return Err(reject(request, Status::IoError));
        };
        let command = Command::transfer(direction, blocks.wwid.nsid, range, hints(&request));
        let length = request.bytes();
        submit(guard, &queue, (request, None), (command, way, length), last)
    }

    fn commit_rqs(place: &Arc<HctxQueue>, guard: &rcu::Guard) {
        if let Some(queue) = place.queue.read(guard) {
            Queue::send_waiting(&queue, refuse);
        }
    }

    fn ioctl(call: Ioctl<'_, Self>) -> Result<c_int> {
        disk::ioctl(call)
    }

    fn poll(place: &Arc<HctxQueue>) -> u32 {
        let guard = rcu::read_lock();
        let queue = place.queue.read(&guard);
        queue.map_or(0, |queue| queue.context().poll())
    }

    fn timeout(place: &Arc<HctxQueue>, request: &RequestRef<Self>) -> TimeoutAction {
        if place.ends_by_polling(request) {
            return TimeoutAction::Done;
        }
        request.data().timed_out.set(true);
        let guard = rcu::read_lock();
        // Without a queue the teardown is under way already.
        if let Some(queue) = place.queue.read(&guard) {
            let queue = queue.context();
            queue.report_error(ConnError::Timeout {
                qid: queue.qid(),
                tag: request.tag(),
            });
        }
        // The teardown that follows ends the request: it may be in the device.
        TimeoutAction::ResetTimer
    }
}

impl HctxQueue {
    /// Puts a queue pair here, in the place of another one. Sleeps, if there is one.
    pub(crate) fn put(&self, queue: &Arc<QueuePair<Queue>>) {
        {
            let guard = rcu::read_lock();
            let there = self.queue.read(&guard);
            if there.is_some_and(|there| core::ptr::eq(&*there, &**queue)) {
                return;
            }
        }
        if let Some(old) = self.queue.publish(queue.clone()) {
            // Whoever gathered commands there finds the other one when he wants them sent.
            Queue::send_waiting(&old, refuse);
        }
    }

    /// Whether a request whose time is over ends when its queue is polled: nobody may have
    /// done so. Sleeps.
    fn ends_by_polling(&self, request: &RequestRef<Io>) -> bool {
        /// Somebody else may be at it, and a region may have to be invalidated.
        const TURNS: u32 = 10;
        for _ in 0..TURNS {
            {
                let guard = rcu::read_lock();
                match self.queue.read(&guard) {
                    Some(queue) if queue.context().is_polled() => queue.context().poll(),
                    _ => return false,
                };
            }
            if !request.is_under_way() {
                return true;
            }
            fsleep(Delta::from_millis(1));
        }
        false
    }
}

/// The hardware queues for these I/O queues, in their order.
pub(crate) fn counts(split: IoQueueCounts) -> QueueCounts {
    let (default, read) = match split.write() {
        0 => (split.io(), 0),
        write => (write, split.io()),
    };
    QueueCounts {
        default: default.into(),
        read: read.into(),
        poll: split.poll().into(),
    }
}

/// Gives the request to the queue, with its command and the way and length of its data. Made
/// part of its caller, as all that is on the way of a read or write: so the command is put
/// together where it is sent from.
#[inline(always)]
fn submit(
    guard: &rcu::Guard,
    queue: &QueuePair<Queue>,
    (request, payload): (Request<Io>, Option<Buffer>),
    (command, direction, length): (Command, dma::Direction, u32),
    last: bool,
) -> Result<(), Refused<Io>> {
    let Some(slot) = u16::try_from(request.tag())
        .ok()
        .and_then(|tag| Carrier::slot(queue.context(), tag))
    else {
        return Err(reject(request, Status::IoError));
    };
    let carrier = Carrier::new(request, payload);
    let sent = (command, (carrier, direction), length);
    Queue::submit(queue, guard, slot, sent, last, refuse)
}

/// Refuses a request. Unless it comes again, its memory begins anew with the next one of the tag.
#[cold]
fn reject(request: Request<Io>, status: Status) -> Refused<Io> {
    if !matches!(status, Status::Resource) {
        request.data().retries.set(0);
    }
    request.refuse(status)
}

/// The queue did not take a request, or did and cannot send it.
#[cold]
fn refuse(error: Error, carrier: Option<Carrier<Io>>) -> Result<(), Refused<Io>> {
    let Some(carrier) = carrier else {
        return Ok(());
    };
    let request = carrier.into_request();
    let status = match error {
        ENOMEM | EBUSY | EAGAIN => Status::Resource,
        // It cannot be mapped for the device, most often because others are.
        EIO => match !request.no_retry() && request.data().retries() < MAX_RETRIES.into() {
            true => {
                request.data().retries.add(1);
                Status::Resource
            }
            false => Status::Transport,
        },
        // Requests will be held back, or fail, as soon as that is seen to.
        error if error == rrdma::errno::ENOTCONN => match request.no_retry() {
            true => Status::Transport,
            false => Status::Resource,
        },
        _ => Status::IoError,
    };
    Err(reject(request, status))
}

impl NsDisk {
    /// Takes a request that is neither a read nor a write.
    #[inline(never)]
    fn queue_other(
        &self,
        guard: &rcu::Guard,
        queue: &QueuePair<Queue>,
        request: Request<Io>,
        last: bool,
    ) -> Result<(), Refused<Io>> {
        let (command, payload) = match self.other(&request) {
            Ok(prepared) => prepared,
            Err(status) => return Err(reject(request, status)),
        };
        let direction = match request.op() {
            Op::DriverIn => dma::Direction::FromDevice,
            _ => dma::Direction::ToDevice,
        };
        let length = match &payload {
            Some(payload) => u32::try_from(payload.bytes().len()).unwrap_or(u32::MAX),
            None => request.bytes(),
        };
        let sent = (command, direction, length);
        submit(guard, queue, (request, payload), sent, last)
    }

    /// The command for it, and a payload if that is not the request's pages.
    fn other(&self, request: &Request<Io>) -> Result<(Command, Option<Buffer>), Status> {
        let nsid = self.wwid.nsid;
        let command = match request.op() {
            Op::Flush => Command::flush(nsid),
            Op::WriteZeroes => {
                let deallocate = self.deallocate_zeroes.get() && !request.no_unmap();
                let range = self.range(request).ok_or(Status::IoError)?;
                Command::write_zeroes(nsid, range, deallocate)
            }
            Op::Discard => return self.discard(request),
            Op::DriverIn | Op::DriverOut => {
                request.data().passthru.command().ok_or(Status::IoError)?
            }
            _ => return Err(Status::NotSupported),
        };
        Ok((command, None))
    }

    fn discard(&self, request: &Request<Io>) -> Result<(Command, Option<Buffer>), Status> {
        // Refused for want of memory, the request comes again.
        let mut payload =
            Buffer::new(dsm::PAYLOAD_SIZE, GFP_ATOMIC).map_err(|_| Status::Resource)?;
        let block: &mut [u8; dsm::PAYLOAD_SIZE] = payload
            .bytes_mut()
            .try_into()
            .map_err(|_| Status::IoError)?;
        let ranges = request.ranges().map(|range| dsm::DsmRange {
            start: self.block(range.sector),
            count: u32::try_from(self.block(range.sectors.into())).unwrap_or(u32::MAX),
        });
        let count = dsm::encode(block, ranges).map_err(|_| Status::IoError)?;
        Ok((Command::deallocate(self.wwid.nsid, count), Some(payload)))
    }

    #[inline]
    fn range(&self, request: &Request<Io>) -> Option<BlockRange> {
        let blocks = request.bytes().checked_shr(self.shift.into())?;
        Some(BlockRange {
            start: self.block(request.sector()),
            count: BlockCount::new(blocks)?,
        })
    }

    /// Logs that a request ends with a failure, of which the block layer knows less, unless there
    /// were too many already.
    #[cold]
    fn tell_failure(
        &self,
        request: &Request<Io>,
        status: nvme_proto::format::status::Status,
        retries: u8,
    ) {
        if request.is_quiet() || !self.controller.failed_io.allows(c"rnvmf: failed I/O") {
            return;
        }
        let name = disk_name(self.controller.name.number(), self.wwid.nsid);
        let what = Asked {
            blocks: self,
            request,
        };
        let retries = Counted(retries.into(), "retry", "retries");
        pr_warn!(
            "{name}: {}\n",
            format_args!("{what} failed: {status}, after {retries}")
        );
    }

    /// Sectors in blocks: the limits keep them whole.
    #[inline]
    fn block(&self, sectors: u64) -> u64 {
        let shift = u32::from(self.shift).saturating_sub(SECTOR_SHIFT);
        sectors.checked_shr(shift).unwrap_or(0)
    }
}

#[inline]
fn hints(request: &Request<Io>) -> RwFlags {
    RwFlags {
        force_unit_access: request.is_fua(),
        limited_retry: request.no_retry(),
        prefetch: false,
    }
}

/// What a request asks for, for a person to read.
struct Asked<'a> {
    blocks: &'a NsDisk,
    request: &'a Request<Io>,
}

impl fmt::Display for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.request.op() {
            Op::Flush => return f.write_str("flush"),
            Op::Read => "read",
            Op::Write => "write",
            Op::Discard => "discard",
            Op::WriteZeroes => "zeroing",
            _ => "request",
        };
        let bytes = self.request.bytes();
        let blocks = bytes.checked_shr(self.blocks.shift.into()).unwrap_or(0);
        let blocks = Counted(blocks, "block", "blocks");
        let start = self.blocks.block(self.request.sector());
        write!(f, "{what} of {blocks} at {start}")
    }
}

/// How many there are of what, with the names of one and of more.
struct Counted(u32, &'static str, &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, one, more) = *self;
        write!(f, "{count} {}", if count == 1 { one } else { more })
    }
}

impl Payload for Carrier<Io> {
    const OF_DISK: bool = true;

    #[inline]
    fn retries(&self) -> u64 {
        self.request().data().retries()
    }

    #[inline]
    fn slot(queue: &Queue, tag: u16) -> Option<&Slot<Self>> {
        queue.request_slot(tag)
    }

    #[inline(always)]
    fn deliver(queue: &Queue, completion: cqe::Completion, payload: Option<Self>) {
        let Some(carrier) = payload else {
            return;
        };
        let request = carrier.into_request();
        if matches!(request.op(), Op::DriverIn | Op::DriverOut) {
            request.data().passthru.answered(completion);
            return end(request, block_status(BlockStatus::of(completion.status())));
        }
        match completion.status().is_success() {
            true => end(request, Status::Ok),
            false => failed(queue, completion.status(), request),
        }
    }
}

/// Ends a request that failed, or has it come again.
#[cold]
fn failed(queue: &Queue, status: nvme_proto::format::status::Status, request: Request<Io>) {
    let policy = RetryPolicy {
        max_retries: MAX_RETRIES,
        delays: queue.retry_delays(),
    };
    let made = u8::try_from(request.data().retries()).unwrap_or(u8::MAX);
    let may_retry = !request.no_retry() && !request.is_disk_dying();
    match policy.decide(status, made, may_retry) {
        Disposition::Complete => {
            request.disk_data().tell_failure(&request, status, made);
            end(request, block_status(BlockStatus::of(status)));
        }
        Disposition::Retry { delay_ms } => {
            request.data().retries.add(1);
            queue.stats().retried();
            request.requeue((delay_ms != 0).then(|| Msecs::new(delay_ms)));
        }
    }
}

/// Ends a request; its memory begins anew with the next one of the tag.
#[inline]
pub(crate) fn end(request: Request<Io>, status: Status) {
    request.data().retries.set(0);
    request.complete(status);
}

fn block_status(status: BlockStatus) -> Status {
    match status {
        BlockStatus::Ok => Status::Ok,
        BlockStatus::NoSpace => Status::NoSpace,
        BlockStatus::Target => Status::Target,
        BlockStatus::NotSupported => Status::NotSupported,
        BlockStatus::Medium => Status::Medium,
        BlockStatus::Protection => Status::Protection,
        BlockStatus::ReservationConflict => Status::Reservation,
        BlockStatus::Transport => Status::Transport,
        _ => Status::IoError,
    }
}
