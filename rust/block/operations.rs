// SPDX-License-Identifier: GPL-2.0

//! The driver's side of block devices.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    Ioctl,
    Refused,
    Request,
    RequestRef, //
};
use crate::{sync::RcuSection, sysfs::Attribute};
use kernel::prelude::*;

/// Driver of a disk. C: `struct blk_mq_ops`, and `ioctl` of `struct block_device_operations`.
///
/// # Contexts
///
/// [`queue_rq`](Self::queue_rq), [`queue_rqs`](Self::queue_rqs) and
/// [`commit_rqs`](Self::commit_rqs) run in an RCU read-side critical section and must not sleep.
/// They run concurrently on many CPUs, also for the same hardware queue. [`timeout`](Self::timeout)
/// and the constructors may sleep.
pub trait Operations: Sized + 'static {
    /// Driver data of the tag set.
    type SetData: Send + Sync;

    /// Driver data of a hardware queue of one disk.
    type QueueData: Send + Sync;

    /// Driver data of a disk.
    type DiskData: Send + Sync;

    /// Driver data of a request.
    ///
    /// There is more than one per tag: disks with an I/O scheduler and flushes have requests of
    /// their own, which borrow a tag while in flight. A driver that looks up data by tag has to
    /// keep it itself.
    type RequestData: Send + Sync;

    /// sysfs attributes of each disk in `/sys/block/NAME`: at most 32.
    const ATTRIBUTES: &'static [Attribute<Self::DiskData>] = &[];

    /// Creates the data of hardware queue `index` of a disk. C: `init_hctx`.
    ///
    /// [`Disk::new`](super::Disk::new) calls it once per queue, before the first request.
    /// [`TagSet::set_queues`](super::TagSet::set_queues) calls it again while no requests are in
    /// flight. If it then fails for a queue that existed before, the queue keeps its old data,
    /// because C cannot handle an error there. May sleep, but must not wait for I/O.
    fn new_queue(set: &Self::SetData, index: u32) -> Result<Self::QueueData>;

    /// Creates the data of a request that will be used on hardware queue `queue`. C:
    /// `init_request`.
    ///
    /// It cannot fail: C cannot handle an error for the flush request of a queue that existed
    /// before. May sleep, but must not wait for I/O. The same holds for its destructor.
    fn new_request_data(set: &Self::SetData, queue: u32) -> impl PinInit<Self::RequestData>;

    /// Takes a request to send it to the device.
    ///
    /// The driver must [start](Request::start) the request before it submits it to the hardware. If
    /// `last` is false, another request or [`commit_rqs`](Self::commit_rqs) follows at once.
    /// `section` represents the RCU read-side critical section of the caller. Must not sleep.
    ///
    /// # Errors
    ///
    /// Returns the request; see [`Request::refuse`]. blk-mq sends it again after a short delay if
    /// the status is [`Status::Resource`], and ends it with any other status.
    ///
    /// [`Status::Resource`]: super::Status::Resource
    fn queue_rq(
        queue: &Self::QueueData,
        disk: &Self::DiskData,
        request: Request<Self>,
        last: bool,
        section: &RcuSection,
    ) -> Result<(), Refused<Self>>;

    /// Takes requests that blk-mq passes at once, to send them to the device together.
    ///
    /// The driver [finishes](Refused::finish) those that it refuses. Requests that it does not take
    /// are passed to [`queue_rq`](Self::queue_rq). Must not sleep.
    fn queue_rqs(
        _queue: &Self::QueueData,
        _disk: &Self::DiskData,
        _requests: impl Iterator<Item = Request<Self>>,
        _section: &RcuSection,
    ) {
    }

    /// Submits requests that [`queue_rq`](Self::queue_rq) took but deferred because `last` was
    /// false. `section` is that of `queue_rq`. Must not sleep.
    ///
    /// The call may be missing: quiescing a disk stops it. Therefore a `queue_rq` with `last` also
    /// submits deferred requests, and the driver must find them when the device goes away.
    fn commit_rqs(_queue: &Self::QueueData, _section: &RcuSection) {}

    /// Handles the timeout of a request.
    ///
    /// `request` does not own the request, whose owner may complete it concurrently. To end it, the
    /// driver takes the [`Request`] from where it is stored, which [`tag`](RequestRef::tag) tells, and
    /// [completes](Request::complete) that. If it is no longer there, its owner completes it. May sleep. Called for
    /// one request of a disk at a time.
    fn timeout(queue: &Self::QueueData, request: &RequestRef<Self>) -> TimeoutAction;

    /// Polls a hardware queue for [polled](super::QueueCounts::poll) requests, and returns the
    /// number of completions it handled. If it is not 0, the poller checks whether its request has
    /// completed. Must not sleep; runs concurrently on many CPUs.
    fn poll(_queue: &Self::QueueData) -> u32 {
        0
    }

    /// Handles an ioctl of an open disk that the block layer does not handle itself. The result is
    /// that of the system call. May sleep. The disk is not removed while the [`Ioctl`] exists; see
    /// [`Disk`](super::Disk).
    ///
    /// # Errors
    ///
    /// The `errno` for the process; `ENOTTY` for an unknown ioctl.
    fn ioctl(_call: Ioctl<'_, Self>) -> Result<c_int> {
        Err(ENOTTY)
    }
}

/// What blk-mq does with a request after [`timeout`](Operations::timeout). C: `enum
/// blk_eh_timer_return`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutAction {
    /// The driver has completed the request or is about to. Its timer does not run any more.
    Done,
    /// The request stays in flight and its timer restarts.
    ResetTimer,
}
