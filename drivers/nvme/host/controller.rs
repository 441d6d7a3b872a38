// SPDX-License-Identifier: GPL-2.0

//! One controller, from connect to removal.
//!
//! Each controller has a thread, [`CtrlThread`]. Only this thread sets up and tears down the
//! connection, which it owns as an [`association::Association`]. Other contexts report an error or
//! store a request, and wake the thread. So set-up and teardown never race. The thread never waits
//! for the disks' I/O, because that I/O may depend on the thread: [scan work](scan_work) adds and
//! removes disks in a work item. Time limits that must hold while the thread connects or waits for a
//! response have a [thread of their own](deadlines).
//!
//! ```text
//!             ┌────────────────────┐
//!             ▼                    │
//! New ─▶ Connecting ─▶ Live ─▶ Resetting ─▶ Dead ─▶ Deleting
//!             └─────────────────────────────▲         ▲
//!                     (from any state, when removal is requested)
//! ```

mod aen;
mod association;
mod ctrl_device;
mod deadlines;
pub(crate) mod discovery;
mod disk_controller;
mod held_writes;
mod passthru;
mod reconnect;
mod scan_lock;
mod scan_work;
mod serve;
mod services;
mod setup;
mod status;
mod thread;

pub(crate) use ctrl_device::CtrlDevice;
use ctrl_device::Uevent;
pub(crate) use discovery::{
    Discovery,
    DiscoveryResult,
    Log, //
};
pub(crate) use services::{
    CtrlView,
    DeviceRemoval,
    DiscoveryView,
    EventSink,
    Services, //
};
pub(crate) use thread::CtrlThread;

pub(crate) use status::{
    CtrlInfo,
    CtrlStatus,
    ReconnectStatus, //
};

use deadlines::RemovalWatch;
use held_writes::HeldWrites;
use scan_lock::ScanLock;
use status::{
    ScanRequester,
    Status, //
};

use crate::{
    admin::{
        Admin,
        KeepAliveTimer,
        Sender,
        ThreadSender,
        COMMAND, //
    },
    ctrl_error::CtrlError,
    event::Event,
    name::CtrlName,
    namespace::{IdOwner, NamespaceSet, ScanContext},
    options::{
        Options,
        Settings, //
    },
    stats::CtrlStats,
    uapi::ErrorStage, //
};
use kernel::{
    impl_has_work, new_mutex, new_work,
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc,
        Mutex, //
    },
    workqueue::Work,
};
use nvme_proto::policy::ctrl_state::CtrlState;
use nvme_rdma_transport::{
    conn_error::ConnError,
    connect::DeviceUser,
    params::ADMIN_CHANNELS,
    ulp::{
        Interruption,
        Waiter, //
    },
};
use rnvmf_disk::{
    trace,
    AdminChannel,
    ErrorNotifier,
    Queue, //
};
use rrdma::{
    block::Openers,
    chrdev,
    log::RateLimit,
    rdma::{
        cm::Connected,
        device::{
            Device,
            DeviceRef, //
        },
    },
    sync::{
        Deadline,
        Msecs,
        RelaxedBool,
        TimedCompletion, //
    },
    sysfs, //
};

/// Longest sleep of the controller's thread while it has no deadline.
const IDLE: Msecs = Msecs::from_secs(3600);

/// An NVMe controller of the host.
#[pin_data]
pub(crate) struct Controller {
    /// User-space handle; not soon reused.
    pub(crate) id: u32,
    pub(crate) name: CtrlName,
    pub(crate) options: Options,
    pub(crate) services: Arc<Services>,
    /// Wakes the controller's thread.
    wake: Arc<TimedCompletion>,
    pub(crate) notifier: Arc<ErrorNotifier>,
    /// Carries admin commands from user space.
    pub(crate) user_channel: Arc<AdminChannel>,
    /// Carries the admin commands of scan work.
    scan_channel: Arc<AdminChannel>,
    #[pin]
    pub(crate) status: Status,
    /// The controller in sysfs and `/dev`; `None` before the first connection and after removal.
    #[pin]
    ctrl_device: Mutex<Option<Arc<CtrlDevice>>>,
    /// Options that user space can change at run time.
    #[pin]
    settings: Mutex<Settings>,
    /// Writes that were in flight when a connection was lost.
    #[pin]
    held_writes: HeldWrites,
    #[pin]
    removal_watch: RemovalWatch,
    /// Requests without a connection are held for the next one; otherwise they fail.
    holds_io: RelaxedBool,
    /// Time for which the target wants requests with path errors retried, in milliseconds. Written by
    /// the controller's thread.
    target_retry_ms: Atomic<u32>,
    /// `fast_io_fail_tmo` of `settings`, which limits that time, in milliseconds; `u32::MAX` if there is
    /// none. Written with `settings` locked.
    fast_io_fail_ms: Atomic<u32>,
    /// The RDMA device, while the controller has objects on it. Its removal waits for
    /// [`release_device`](Self::release_device). The lock is a leaf.
    #[pin]
    rdma_device: Mutex<Option<DeviceRef>>,
    /// Counters by queue; kept across connections.
    #[pin]
    ctrl_stats: Mutex<CtrlStats>,
    /// Limits the rate of log lines about failed I/O.
    #[pin]
    pub(crate) failed_io: RateLimit,
    #[pin]
    pub(crate) namespaces: NamespaceSet,
    #[pin]
    keep_alive: KeepAliveTimer,
    /// The context of scans and new disks; `None` before the first connection and once the disks
    /// are removed.
    #[pin]
    scan_context: Mutex<Option<Arc<ScanContext>>>,
    #[pin]
    scan_lock: ScanLock,
    #[pin]
    scan_work: Work<Controller>,
}

impl_has_work! {
    impl HasWork<Self> for Controller { self.scan_work }
}

impl Controller {
    /// Creates a controller; [`CtrlThread::run`] connects it. May sleep.
    pub(crate) fn new(
        services: Arc<Services>,
        id: u32,
        name: CtrlName,
        options: Options,
        settings: Settings,
    ) -> Result<Arc<Self>> {
        let wake = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        let notifier = ErrorNotifier::new(wake.clone())?;
        let trace_id = trace_id(name);
        let keep_alive_ms = options.keep_alive_ms();
        let ids = IdOwner::new(services.ids.clone(), options.subsystem(), name.number())?;
        let (changes, openers) = (services.changes.clone(), Openers::new()?);
        let (user_channel, scan_channel) = (AdminChannel::new()?, AdminChannel::new()?);
        Arc::pin_init(
            pin_init!(Self {
                id,
                name,
                options,
                services,
                wake,
                notifier,
                user_channel,
                scan_channel,
                status <- Status::new(trace_id),
                ctrl_device <- new_mutex!(None, "rnvmf::Controller::ctrl_device"),
                fast_io_fail_ms: Atomic::new(fast_io_fail_ms(&settings)),
                settings <- new_mutex!(settings, "rnvmf::Controller::settings"),
                held_writes <- HeldWrites::new(),
                removal_watch <- RemovalWatch::new(),
                holds_io: RelaxedBool::new(false),
                target_retry_ms: Atomic::new(0),
                rdma_device <- new_mutex!(None, "rnvmf::Controller::rdma_device"),
                ctrl_stats <- new_mutex!(CtrlStats::new(), "rnvmf::Controller::ctrl_stats"),
                failed_io <- RateLimit::new(),
                namespaces <- NamespaceSet::new(ids, changes, openers),
                keep_alive <- KeepAliveTimer::new(keep_alive_ms),
                scan_context <- new_mutex!(None, "rnvmf::Controller::scan_context"),
                scan_lock <- ScanLock::new(wake.clone()),
                scan_work <- new_work!("rnvmf::Controller::scan_work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Requests removal. Any context.
    pub(crate) fn delete(&self) {
        self.status.request_removal();
        self.user_channel.close();
        self.scan_channel.close();
        self.wake.complete();
        self.services.deadlines.rearm();
    }

    /// Returns the first error of the connection, if any. Any context.
    #[inline(never)]
    fn conn_error(&self) -> Option<ConnError> {
        self.notifier.error()
    }

    fn is_deleting(&self) -> bool {
        self.status.is_removal_requested()
    }

    /// Acts on the time limits that have expired, and returns the next one. May sleep, but not for I/O.
    pub(crate) fn act_on_deadlines(&self) -> Deadline {
        self.held_writes.release_if_due();
        self.held_writes.due().min(self.watch_removal())
    }

    /// Reports an error of the connection if removal is requested and the target does not answer the
    /// commands of the disks. Returns when to call it again.
    fn watch_removal(&self) -> Deadline {
        if !self.is_deleting() {
            return Deadline::NEVER;
        }
        let context = self.scan_context.lock().clone();
        let Some(context) = context else {
            return Deadline::NEVER;
        };
        let count = |age| rnvmf_disk::count_unanswered(&context.tag_set, age);
        if let Some(error) = self.removal_watch.overdue(count) {
            self.notifier.report(error);
        }
        Deadline::after(RemovalWatch::INTERVAL)
    }

    /// Changes a live controller to resetting, for its thread to reset it.
    /// [`wait_reset`](Self::wait_reset) waits for the result. May sleep.
    ///
    /// # Errors
    ///
    /// The state of the controller, if it is not live.
    pub(crate) fn request_reset(&self) -> Result<(), CtrlState> {
        self.status.request_reset()?;
        self.wake.complete();
        self.notify_change();
        Ok(())
    }

    /// Waits for a [requested](Self::request_reset) reset. Sleeps.
    ///
    /// # Errors
    ///
    /// Those of [`Status::wait_reset`].
    pub(crate) fn wait_reset(&self) -> Result {
        self.status.wait_reset()
    }

    /// Requests a namespace scan of a live controller, and returns the number of the request. It is
    /// completed once [`ScanRequests::done`] reaches the number. If the scan fails, its error is
    /// the controller's last error. May sleep.
    ///
    /// [`ScanRequests::done`]: nvme_proto::policy::scan_requests::ScanRequests::done
    ///
    /// # Errors
    ///
    /// The state of the controller, if it is not live.
    pub(crate) fn request_scan(&self) -> Result<u32, CtrlState> {
        self.request_scan_for(ScanRequester::User)
    }

    fn request_scan_for(&self, requester: ScanRequester) -> Result<u32, CtrlState> {
        let number = self.status.request_scan(requester)?;
        self.wake.complete();
        Ok(number)
    }

    /// Returns the options that user space can change. May sleep.
    #[inline(never)]
    pub(crate) fn settings(&self) -> Settings {
        *self.settings.lock()
    }

    /// Changes these options, in any state, and notifies user space. May sleep.
    pub(crate) fn set(&self, change: impl FnOnce(Settings) -> Result<Settings>) -> Result {
        {
            let mut settings = self.settings.lock();
            *settings = change(*settings)?;
            let limit = fast_io_fail_ms(&settings);
            self.fast_io_fail_ms.store(limit, ordering::Relaxed);
        }
        self.wake.complete();
        self.notify_change();
        Ok(())
    }

    /// Returns the channels of the controller's admin queues.
    fn admin_channels(&self) -> [&Arc<AdminChannel>; ADMIN_CHANNELS] {
        [&self.user_channel, &self.scan_channel]
    }

    /// Sleeps until the thread is woken or `limit` expires.
    pub(crate) fn wait(&self, limit: Msecs) {
        // The caller checks its condition again in either case.
        let _ = self.wake.wait_timeout(limit);
    }

    /// Enters `state` with `error` and notifies user space, unless [`Status::enter`] refuses. May
    /// sleep.
    fn enter(&self, state: CtrlState, error: Option<&CtrlError>) {
        if self.status.enter(state, error) {
            self.notify_change();
            self.queue_uevent(state);
        }
    }

    /// Queues a uevent. For the controller's thread only: a callback of sysfs must not hold the
    /// last reference to the device, whose release waits for callbacks.
    fn queue_uevent(&self, uevent: impl Into<Uevent>) {
        let uevent = uevent.into();
        let ctrl_device = self.ctrl_device.lock().clone();
        if let Some(ctrl_device) = ctrl_device.filter(|ctrl_device| ctrl_device.note(uevent)) {
            self.services.enqueue(ctrl_device);
        }
    }

    /// Sends an event to user space. May sleep.
    #[inline(never)]
    pub(crate) fn notify(&self, event: Event<'_>) {
        self.services.events.notify(&self.view(), event);
    }

    /// Returns the view of the controller that an event contains. May sleep.
    pub(crate) fn view(&self) -> CtrlView<'_> {
        CtrlView {
            id: self.id,
            name: self.name,
            options: &self.options,
            settings: self.settings(),
            namespaces: self.namespaces.count(),
            held_writes: u32::try_from(self.held_writes.count()).unwrap_or(u32::MAX),
            held_writes_due: self.held_writes.due(),
            status: &self.status,
        }
    }

    /// Reports a change of the status to waiters and user space. May sleep.
    #[inline(never)]
    fn notify_change(&self) {
        self.status.notify();
        self.notify(Event::Changed);
    }

    /// Lets a program that waits for the first disks know that they are being found. May sleep.
    #[inline(never)]
    fn tell_progress(&self) {
        if self.status.state() == CtrlState::Connecting {
            self.notify(Event::Changed);
        }
    }

    /// Keeps an error without a change of state, and notifies user space. May sleep.
    fn keep_error(&self, error: &CtrlError) {
        self.status
            .update(|status| status.error = Some(error.clone()));
        self.notify_change();
    }

    /// Calls `look` with the counters of the queues. May sleep.
    pub(crate) fn with_stats<R>(&self, look: impl FnOnce(&CtrlStats) -> R) -> R {
        look(&self.ctrl_stats.lock())
    }

    /// Starts or stops measuring the latencies of commands. May sleep.
    pub(crate) fn set_timed(&self, timed: bool) {
        self.ctrl_stats.lock().set_timed(timed);
    }

    /// Adds the controller to sysfs, as the parent of its disks, and to `/dev`. Sleeps.
    fn add_device(self: &Arc<Self>) -> Result<(), CtrlError> {
        let fail = |error| CtrlError::kernel(ErrorStage::Namespaces, error, "sysfs");
        *self.ctrl_device.lock() = Some(self.make_device().map_err(fail)?);
        Ok(())
    }

    fn make_device(self: &Arc<Self>) -> Result<Arc<CtrlDevice>> {
        let (services, number) = (&self.services, self.name.number());
        let name = CString::try_from_fmt(fmt!("{}", self.name))?;
        let node = chrdev::Node::new(
            services.numbers.clone(),
            number,
            services.module,
            self.clone(),
        )?;
        let device = sysfs::Device::new(services.class.clone(), &name, self.clone(), Some(node))?;
        let state = self.status.state();
        CtrlDevice::new(self.name, self.wake.clone(), device, state)
    }

    /// Removes the controller from sysfs and `/dev`, once all queued uevents are sent. The disks
    /// must be removed before. Sleeps.
    fn remove_device(&self) {
        let ctrl_device = self.ctrl_device.lock().take();
        while ctrl_device
            .as_ref()
            .is_some_and(|ctrl_device| !ctrl_device.leave())
        {
            self.wait(IDLE);
        }
    }

    /// Returns the parent device of the disks. May sleep.
    pub(crate) fn parent_device(&self) -> Option<Arc<sysfs::Device>> {
        self.ctrl_device.lock().as_ref()?.device()
    }

    /// Releases the device. The controller's objects on it must be gone. May sleep.
    fn release_device(&self) {
        let device = self.rdma_device.lock().take();
        drop(device);
    }

    /// Whether the controller has objects on `device`. May sleep.
    pub(crate) fn uses(&self, device: &Device) -> bool {
        let used = self.rdma_device.lock();
        used.as_ref().is_some_and(|used| **used == *device)
    }

    /// Releases the device and clears the error, after the teardown of a connection or a failed
    /// attempt. May sleep.
    fn release_connection(&self) {
        self.release_device();
        self.notifier.reset();
    }

    /// Enters the state dead with `error`, and logs it. May sleep.
    fn fail(&self, error: &CtrlError) {
        self.release_device();
        self.enter(CtrlState::Dead, Some(error));
        let message = error.message();
        if self.is_deleting() {
            // A failure during removal is expected.
            self.log(format_args!("{message}"));
        } else {
            self.log_error(format_args!("{message}"));
        }
    }

    /// Returns the admin queue `queue` for commands of the controller's thread until `deadline`.
    #[inline(never)]
    fn admin<'a>(&'a self, queue: &'a Connected<Queue>, deadline: Deadline) -> Admin<'a> {
        Admin {
            sender: Sender::Thread(ThreadSender {
                queue,
                waiter: self,
                keep_alive: &self.keep_alive,
            }),
            deadline,
            timeout: COMMAND,
        }
    }

    /// Logs an expected event.
    pub(crate) fn log(&self, message: core::fmt::Arguments<'_>) {
        pr_info!("{}: {}\n", self.name, message);
    }

    /// Logs a condition that the host handles, but that an administrator may want to examine.
    pub(crate) fn warn(&self, message: core::fmt::Arguments<'_>) {
        pr_warn!("{}: {}\n", self.name, message);
    }

    /// Logs an error that the host does not recover from by itself.
    fn log_error(&self, message: core::fmt::Arguments<'_>) {
        pr_err!("{}: {}\n", self.name, message);
    }
}

/// Returns the `fast_io_fail_tmo` in milliseconds; `u32::MAX` if there is none.
fn fast_io_fail_ms(settings: &Settings) -> u32 {
    settings.limits().fast_io_fail_tmo_ms.unwrap_or(u32::MAX)
}

/// Returns the `ctrl_id` of a controller in trace records.
fn trace_id(name: CtrlName) -> i32 {
    match name {
        CtrlName::Discovery(_) => trace::DISCOVERY,
        // Numbers are less than 256.
        CtrlName::Device(number) => i32::try_from(number).unwrap_or(i32::MAX),
    }
}

impl Waiter for Controller {
    #[inline(never)]
    fn interruption(&self) -> Option<Interruption> {
        // The thread enters the state when it begins the removal. That does not cancel its own
        // commands, but it does not wait for a keep-alive response once the disks are gone.
        let cancelled = match self.status.state() {
            CtrlState::Deleting => self.scan_lock.is_work_done(),
            // Removal waits for the scan lock. Its holder may wait for I/O, so the keep-alive must time out if
            // the target does not answer.
            CtrlState::Live if self.scan_lock.is_held() => false,
            _ => self.is_deleting(),
        };
        if cancelled {
            return Some(Interruption::Cancelled);
        }
        self.conn_error().map(Interruption::ConnError)
    }

    fn wait(&self, limit: Msecs) {
        self.wait(limit);
    }
}

impl DeviceUser for Controller {
    fn acquire(&self, device: &Device) -> Option<DeviceRef> {
        self.services.acquire(device)
    }

    fn use_device(&self, device: &DeviceRef) -> Result<(), ConnError> {
        // Set in either case, until `release_device`.
        *self.rdma_device.lock() = Some(device.clone());
        // A removal that began too early to see the device here has set its flag by now.
        match device.is_removing() {
            true => Err(ConnError::DeviceRemoved),
            false => Ok(()),
        }
    }
}
