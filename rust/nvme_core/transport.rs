// SPDX-License-Identifier: GPL-2.0

//! What a transport implements.

use crate::{
    ctrl_loss::CtrlLossTmo,
    options::Options,
    request::{
        Refused,
        Request, //
    },
    weak_controller::{
        AssociationNumber,
        WeakController, //
    }, //
};
use kernel::{prelude::*, str::CStr, sync::Arc};
use rrdma::sync::RcuSection;

/// Parameters of all queues of one connect.
#[derive(Clone, Copy)]
pub struct ConnectParams<'a> {
    /// The association that the queues belong to.
    pub association: AssociationNumber,
    /// Instance of the controller: 0 for `nvme0`.
    pub instance: i32,
    /// Controller identifier of the association, for I/O queues. While the admin queue connects, it is that of
    /// the last association, or 0.
    pub controller_id: u16,
    /// The `ctrl_loss_tmo` of the controller.
    pub ctrl_loss_tmo: CtrlLossTmo<'a>,
    /// Number of entries of each queue.
    pub entries: u16,
    /// Number of requests that can be in flight on each queue.
    pub requests: u16,
    /// Size of an I/O command capsule, in units of 16 bytes (IOCCSZ).
    pub capsule_size: u32,
    /// Offset of in-capsule data, in units of 16 bytes (ICDOFF).
    pub in_capsule_data_offset: u16,
    /// Support of SGLs, the bits of SGLS (Identify Controller).
    pub sgl_support: u32,
    /// QID of the first queue that is polled; larger than all if none is.
    pub first_polled: u16,
}

/// Largest transfer of a command.
#[derive(Clone, Copy)]
pub struct TransferLimits {
    /// Largest number of segments, and of pages of 4096 bytes.
    pub pages: u32,
}

/// A transport of NVMe over Fabrics: one value for each controller.
///
/// nvme-core and this crate decide when queues are connected and disconnected. The transport moves
/// commands and data.
///
/// | method                                       | context                                       |
/// |----------------------------------------------|-----------------------------------------------|
/// | [`new`](Self::new), [`new_queue`](Self::new_queue) | write to `/dev/nvme-fabrics`            |
/// | [`connect`](Self::connect)                   | the same, or a work item; may sleep           |
/// | [`retract`](Self::retract), [`stop`](Self::stop) | work items and time-outs; may sleep       |
/// | [`disconnect`](Self::disconnect)             | work items and time-outs; may sleep           |
/// | [`queue_rq`](Self::queue_rq), [`queue_rqs`](Self::queue_rqs), [`commit_rqs`](Self::commit_rqs) | RCU read-side critical section |
/// | [`is_kept`](Self::is_kept)                   | time-outs                                     |
/// | [`poll`](Self::poll)                         | any                                           |
/// | [`submit_async_event`](Self::submit_async_event) | work item; may sleep                      |
pub trait Transport: Sized + Send + Sync + 'static {
    /// Data that all controllers of the transport share, such as its RDMA devices.
    type Context: Send + Sync;

    /// Data of a queue. It lives as long as the controller, over many connections.
    type Queue: Send + Sync;

    /// Port of the target if the user names none.
    const DEFAULT_PORT: &'static CStr;

    /// Creates the transport of a new controller. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for options that make no sense; the transport logs which. `ENOMEM`.
    fn new(
        context: &Self::Context,
        options: &Options,
        controller: Arc<WeakController>,
    ) -> Result<Self>;

    /// Creates the data of queue `qid`. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn new_queue(&self, qid: u16) -> Result<Self::Queue>;

    /// Connects disconnected queues: the admin queue alone, or I/O queues. Sleeps.
    ///
    /// Afterwards, the queues carry commands. The first one is Connect, which nvme-core sends.
    ///
    /// # Errors
    ///
    /// The `errno` of the cause, which the transport logs. Some of the queues may be connected
    /// then; the caller disconnects them.
    fn connect<'a>(
        &self,
        params: &ConnectParams<'_>,
        queues: impl Iterator<Item = &'a Self::Queue> + Clone,
    ) -> Result;

    /// Wakes the thread in [`connect`](Self::connect), because the controller is being deleted
    /// ([`WeakController::is_deleted`]): the thread gives up. Called with spinlocks of nvme-core held, and interrupts
    /// off.
    fn interrupt(&self);

    /// Lets no submitter find a queue of an association any more. [`stop`](Self::stop) waits for those that have
    /// found it. Queues that are stopped one after the other are retracted first, so they wait for one grace period.
    /// Does nothing if the queue is connected in another association. May sleep.
    fn retract(queue: &Self::Queue, association: AssociationNumber);

    /// Sends no further request on a queue of an association, which is disconnected next. Does nothing if the queue
    /// is connected in another one. Sleeps.
    ///
    /// A [disconnect](Self::disconnect) may hold writes, see [`holds_writes`](Self::holds_writes). So all queues that
    /// are disconnected one after the other are stopped first, and their holds run at once.
    fn stop(queue: &Self::Queue, association: AssociationNumber);

    /// Disconnects a queue of an association, and [cancels](Request::cancel) all its requests. Does nothing if
    /// it is disconnected, or connected in another one. Sleeps.
    ///
    /// When it returns, the queue owns no request of the association, and the target can access none of their data.
    fn disconnect(queue: &Self::Queue, association: AssociationNumber);

    /// Returns whether a disconnect may hold writes for a while before it cancels them. Any context.
    fn holds_writes(&self) -> bool;

    /// Returns the largest transfer on the device to which the admin queue is connected; one page if it is
    /// not connected. May sleep.
    fn transfer_limits(&self) -> TransferLimits;

    /// Returns the NUMA node of the device to which the admin queue is connected; -1 if unknown.
    /// May sleep.
    fn numa_node(&self) -> i32;

    /// Returns whether the data of a request may be in memory of PCI devices, on the device to which the
    /// admin queue is connected. False if it is not connected. May sleep.
    fn supports_pci_p2pdma(&self) -> bool;

    /// Sends a request. Must not sleep.
    ///
    /// If `last` is false, another request or [`commit_rqs`](Self::commit_rqs) follows at once.
    /// `section` represents the RCU read-side critical section of the caller.
    ///
    /// # Errors
    ///
    /// Returns a request that cannot be sent; see [`Request::refuse`].
    fn queue_rq(
        queue: &Self::Queue,
        request: Request,
        last: bool,
        section: &RcuSection,
    ) -> Result<(), Refused>;

    /// Sends requests that blk-mq passes at once. Must not sleep.
    ///
    /// `requests` starts each request that it returns. The transport [finishes](Refused::finish) those
    /// that cannot be sent. Requests that it does not take are passed to [`queue_rq`](Self::queue_rq).
    fn queue_rqs(
        queue: &Self::Queue,
        requests: impl Iterator<Item = Request>,
        section: &RcuSection,
    );

    /// Sends requests that [`queue_rq`](Self::queue_rq) took but deferred. Must not sleep.
    fn commit_rqs(queue: &Self::Queue, section: &RcuSection);

    /// Returns whether a device keeps the request with this tag since an earlier connection of the queue.
    /// Such a request does not end before the device returns it. False for a request of the present connection. Any
    /// context.
    fn is_kept(queue: &Self::Queue, tag: u32) -> bool;

    /// Handles completions of a polled queue, and returns their number. Any context.
    fn poll(queue: &Self::Queue) -> u32;

    /// Sends an Asynchronous Event Request on the admin queue. The response goes to
    /// [`WeakController::complete_async_event`]. May sleep.
    fn submit_async_event(admin: &Self::Queue);
}
