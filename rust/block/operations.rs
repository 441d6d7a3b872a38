// SPDX-License-Identifier: GPL-2.0

//! What a driver implements.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use super::{
    Ioctl,
    Refused,
    Request,
    RequestRef, //
};
use crate::sysfs::Attribute;
use kernel::{
    prelude::*,
    sync::rcu, //
};

/// The driver of a disk.
///
/// # Contexts
///
/// [`queue_rq`](Self::queue_rq) and [`commit_rqs`](Self::commit_rqs) run within an
/// RCU read-side critical section and must not sleep; they run on many CPUs at the
/// same time, for one queue too. [`timeout`](Self::timeout) and the constructors may
/// sleep.
pub trait Operations: Sized + 'static {
    /// Data of the tag set.
    type SetData: Send + Sync;

    /// Data of a hardware queue, one a disk.
    type QueueData: Send + Sync;

    /// Data of a disk.
    type DiskData: Send + Sync;

    /// Data of a request.
    ///
    /// It is not one a tag: the requests of a disk with an I/O scheduler, and those
    /// for flushes, come from elsewhere and borrow a tag while they are under way.
    /// What must be found by its tag is the driver's to keep.
    type RequestData: Send + Sync;

    /// What each disk shows in `/sys/block/NAME`, from its data: at most 32.
    const ATTRIBUTES: &'static [Attribute<Self::DiskData>] = &[];

    /// Makes the data of the hardware queue `index` of a disk.
    ///
    /// Called once a disk and queue, in [`Disk::new`](super::Disk::new), before the
    /// disk gets its first request; and again, while it has none, in
    /// [`TagSet::set_queues`](super::TagSet::set_queues), where a queue that there was
    /// before keeps its data if this fails: C cannot cope with an error there. May sleep,
    /// but must not wait for I/O.
    fn new_queue(set: &Self::SetData, index: u32) -> Result<Self::QueueData>;

    /// Makes the data of a request that will be used on hardware queue `queue`.
    ///
    /// May sleep, but must not wait for I/O. What drops it may too.
    fn new_request_data(set: &Self::SetData, queue: u32) -> impl PinInit<Self::RequestData, Error>;

    /// Takes a request for the device.
    ///
    /// The driver [starts](Request::start) it before the hardware can know of it. If
    /// `last` is false another one follows at once, or
    /// [`commit_rqs`](Self::commit_rqs) does. `guard` stands for the critical section that it is
    /// called in. May not sleep.
    ///
    /// # Errors
    ///
    /// Gives the request back, see [`Request::refuse`]: with [`Status::Resource`] it
    /// comes again after a short while, else it ends with that status.
    ///
    /// [`Status::Resource`]: super::Status::Resource
    fn queue_rq(
        queue: &Self::QueueData,
        disk: &Self::DiskData,
        request: Request<Self>,
        last: bool,
        guard: &rcu::Guard,
    ) -> Result<(), Refused<Self>>;

    /// Tells the device of requests that [`queue_rq`](Self::queue_rq) took, but kept
    /// back because more were announced. `guard` is as there. May not sleep.
    ///
    /// Not each announcement is kept: while a disk is quiesced none follows. So whoever takes a
    /// request that is the last has to tell of those that are kept back, too, and they have to
    /// be found when the device goes.
    fn commit_rqs(_queue: &Self::QueueData, _guard: &rcu::Guard) {}

    /// Looks into a request that is under way for longer than its time.
    ///
    /// Its owner may end it at the same time, and what is owned elsewhere cannot be
    /// ended here: if the driver decides to, it does so with the [`Request`], where
    /// it keeps it. May sleep. One request of a disk is looked into at a time.
    fn timeout(queue: &Self::QueueData, request: &RequestRef<Self>) -> TimeoutAction;

    /// Looks for completions on a queue for [polled](super::QueueCounts::poll) requests, and
    /// returns how many it handled: if there were some, whoever polls looks whether its
    /// request is among them. May not sleep; runs on many CPUs at the same time.
    fn poll(_queue: &Self::QueueData) -> u32 {
        0
    }

    /// Does what a process asks of a disk that it has open, beyond what the block layer does
    /// itself. What is returned is the result of its `ioctl`. May sleep; the disk is not gone
    /// as long as there is the [`Ioctl`], as [`Disk`](super::Disk) says.
    ///
    /// # Errors
    ///
    /// What the process gets as `errno`; `ENOTTY` for a call that is not known.
    fn ioctl(_call: Ioctl<'_, Self>) -> Result<c_int> {
        Err(ENOTTY)
    }
}

/// What becomes of a request whose time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutAction {
    /// It has been ended, or is about to be. It has no time-out any more.
    Done,
    /// It stays under way, and has as much time again.
    ResetTimer,
}
