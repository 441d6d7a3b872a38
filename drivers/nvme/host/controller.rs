// SPDX-License-Identifier: GPL-2.0

//! One controller, from connect to removal.
//!
//! A controller has a thread of its own, [`CtrlThread`]. Only this thread makes and ends what
//! belongs to the connection, which it owns as an [`association::Association`]. All others report
//! an error or request removal, and wake the thread. So there is one set-up and one teardown, and
//! they cannot meet. The thread never waits for the disks' I/O, which may need it:
//! [scan work](scan_work) makes and removes disks beside it.
//!
//! ```text
//!             ┌────────────────────┐
//!             ▼                    │
//! New ─▶ Connecting ─▶ Live ─▶ Resetting ─▶ Dead ─▶ Deleting
//!             └─────────────────────────────▲         ▲
//!                     (from any state, when removal is asked for)
//! ```

mod aen;
mod association;
mod ctrl_device;
pub(crate) mod discovery;
mod passthru;
mod rdma_device;
mod reconnect;
mod scan_context;
mod scan_lock;
mod scan_work;
mod serve;
mod services;
mod setup;
mod status;
mod thread;

pub(crate) use ctrl_device::CtrlDevice;
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

use rdma_device::{
    RdmaDevice,
    Removing, //
};
use scan_context::ScanContext;
use scan_lock::ScanLock;
use status::{
    Change, //
    ScanRequester,
    Status,
};

use crate::disk::Queue;
use crate::{
    admin::{
        Admin,
        Sender,
        ThreadSender, //
    },
    ctrl_error::CtrlError,
    disk::{
        AdminChannel,
        ErrorNotifier, //
    },
    event::Event,
    keep_alive::KeepAliveTimer,
    name::CtrlName,
    namespace::{IdOwner, NamespaceSet},
    options::{
        Options,
        Settings, //
    },
    stats::CtrlStats,
    trace,
    uapi::ErrorStage, //
};
use kernel::{
    impl_has_work, new_mutex, new_work,
    prelude::*,
    str::CString,
    sync::{
        Arc,
        Mutex, //
    },
    workqueue::Work,
};
use nvme_proto::policy::ctrl_state::CtrlState;
use nvme_rdma_transport::{
    conn_error::ConnError,
    connect::DeviceUser,
    params::{
        ADMIN_CHANNELS, //
    },
    ulp::{
        Interruption,
        Waiter, //
    },
};
use rrdma::{
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
        TimedCompletion, //
    },
    sysfs, //
};

/// The longest sleep of a thread that waits for nothing in particular.
const IDLE: Msecs = Msecs::from_secs(3600);

/// A controller.
#[pin_data]
pub(crate) struct Controller {
    /// User-space handle; not soon reused.
    pub(crate) id: u32,
    pub(crate) name: CtrlName,
    pub(crate) options: Options,
    pub(crate) services: Arc<Services>,
    wake: Arc<TimedCompletion>,
    pub(crate) notifier: Arc<ErrorNotifier>,
    /// Sends the admin commands of users.
    pub(crate) user_channel: Arc<AdminChannel>,
    /// Sends the admin commands of scan work.
    scan_channel: Arc<AdminChannel>,
    #[pin]
    pub(crate) status: Status,
    /// The controller in sysfs, once it is connected.
    #[pin]
    ctrl_device: Mutex<Option<Arc<CtrlDevice>>>,
    /// Options that can be changed.
    #[pin]
    settings: Mutex<Settings>,
    /// The RDMA device, while the controller has objects on it.
    #[pin]
    rdma_device: RdmaDevice,
    /// Counters of its queues; outlive their connections.
    #[pin]
    ctrl_stats: Mutex<CtrlStats>,
    /// Limits the log of failed I/O.
    #[pin]
    pub(crate) failed_io: RateLimit,
    #[pin]
    pub(crate) namespaces: NamespaceSet,
    #[pin]
    keep_alive: KeepAliveTimer,
    /// What the disks are made with, while the controller is or may be live again.
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
    /// A controller that does nothing yet. May sleep.
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
        let disk_generation = services.disk_generation.clone();
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
                settings <- new_mutex!(settings, "rnvmf::Controller::settings"),
                rdma_device <- RdmaDevice::new(),
                ctrl_stats <- new_mutex!(CtrlStats::new(), "rnvmf::Controller::ctrl_stats"),
                failed_io <- RateLimit::new(),
                namespaces <- NamespaceSet::new(ids, disk_generation),
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
    }

    fn is_deleting(&self) -> bool {
        self.status.is_removal_requested()
    }

    /// Requests a reset of a live controller. It is resetting at once; later it is live again, or
    /// has an error. May sleep.
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

    /// Waits for a reset that was [requested](Self::request_reset). Sleeps.
    ///
    /// # Errors
    ///
    /// As [`Status::wait_reset`].
    pub(crate) fn wait_reset(&self) -> Result {
        self.status.wait_reset()
    }

    /// Requests a scan of the namespaces of a live controller, and returns its number: the scan is
    /// completed when [`ScanRequests::done`](nvme_proto::policy::scan_requests::ScanRequests::done) has reached it. Its error, if any, is that
    /// of the controller. May sleep.
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

    /// What can be changed of it.
    pub(crate) fn settings(&self) -> Settings {
        *self.settings.lock()
    }

    /// Changes that, also while the connection is lost, and tells. May sleep.
    pub(crate) fn set(&self, change: impl FnOnce(Settings) -> Result<Settings>) -> Result {
        {
            let mut settings = self.settings.lock();
            *settings = change(*settings)?;
        }
        self.wake.complete();
        self.notify_change();
        Ok(())
    }

    /// Why the thread should stop waiting for the target. Sleeps.
    pub(crate) fn interruption(&self) -> Option<Interruption> {
        // What the removal itself asks of the target is not cancelled by it, but that we live need
        // not be known any more once the disks are gone.
        let cancelled = if self.status.is_removal_begun() {
            self.scan_lock.is_work_done()
        } else {
            self.is_deleting()
        };
        if cancelled {
            return Some(Interruption::Cancelled);
        }
        self.notifier.error().map(Interruption::ConnError)
    }

    /// The channels that its admin queues are made with.
    fn admin_channels(&self) -> [&Arc<AdminChannel>; ADMIN_CHANNELS] {
        [&self.user_channel, &self.scan_channel]
    }

    /// Sleeps until there is something to look at, or `limit` is over.
    pub(crate) fn wait(&self, limit: Msecs) {
        // Fired or not, the caller looks again.
        let _ = self.wake.wait_timeout(limit);
    }

    /// Enters `state` with `error`, and tells. Removal may have come first: then nothing happens.
    /// May sleep.
    fn enter(&self, state: CtrlState, error: Option<&CtrlError>) {
        match self.status.enter(state, error) {
            Change::Nothing => {}
            Change::Told => {
                self.notify_change();
                self.queue_uevent(state);
            }
        }
    }

    /// Queues the uevent of a new state. In the controller's thread only: a user of sysfs must not
    /// have the last reference to the device.
    fn queue_uevent(&self, state: CtrlState) {
        let ctrl_device = self.ctrl_device.lock().clone();
        if let Some(ctrl_device) = ctrl_device.filter(|ctrl_device| ctrl_device.note(state)) {
            self.services.enqueue(ctrl_device);
        }
    }

    /// Tells an event. May sleep.
    pub(crate) fn notify(&self, event: Event<'_>) {
        self.services.events.notify(&self.view(), event);
    }

    /// The controller, as an event shows it. May sleep.
    pub(crate) fn view(&self) -> CtrlView<'_> {
        CtrlView {
            id: self.id,
            name: self.name,
            options: &self.options,
            settings: self.settings(),
            namespaces: self.namespaces.count(),
            status: &self.status,
        }
    }

    /// Tells that the status has changed. May sleep.
    fn notify_change(&self) {
        self.status.notify();
        self.notify(Event::Changed);
    }

    /// Keeps an error that changes no state, and tells. May sleep.
    fn keep_error(&self, error: &CtrlError) {
        self.status
            .update(|status| status.error = Some(error.clone()));
        self.notify_change();
    }

    /// What its queues have done.
    pub(crate) fn with_stats<R>(&self, look: impl FnOnce(&CtrlStats) -> R) -> R {
        look(&self.ctrl_stats.lock())
    }

    /// Takes the time of commands from now on, or does not any more. May sleep.
    pub(crate) fn set_timed(&self, timed: bool) {
        self.ctrl_stats.lock().set_timed(timed);
    }

    /// A generation of which disks there are, with that of a list of controllers. Does not change
    /// while the controller's disks are looked at, if it is of them.
    pub(crate) fn generation_of_disks(&self, list: u32) -> u32 {
        self.services.generation_of_disks(list)
    }

    /// Whether the next scan may find a disk though nothing changes on the target.
    fn has_transient_rejections(&self) -> bool {
        self.status.with(|status| status.rejections.is_transient())
    }

    /// Shows the controller in sysfs, for its disks to belong to, and under `/dev`. Sleeps.
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

    /// The controller in sysfs goes when its disks do, which went before, and udev has heard of
    /// what it was told. Sleeps.
    fn remove_device(&self) {
        let ctrl_device = self.ctrl_device.lock().take();
        while ctrl_device
            .as_ref()
            .is_some_and(|ctrl_device| !ctrl_device.leave())
        {
            self.wait(IDLE);
        }
    }

    /// The controller in sysfs, to which its disks belong.
    pub(crate) fn parent_device(&self) -> Option<Arc<sysfs::Device>> {
        self.ctrl_device.lock().as_ref()?.device()
    }

    fn release_device(&self) {
        self.rdma_device.release();
    }

    /// Whether the controller has something on `device`.
    pub(crate) fn uses(&self, device: &Device) -> bool {
        self.rdma_device.is(device)
    }

    /// Whether another attempt to connect is of no use.
    fn is_over(&self, failure: &CtrlError) -> bool {
        failure.is_final() || self.is_deleting()
    }

    /// Forgets the device and the error of a connection that is torn down. May sleep.
    fn reset_connection(&self) {
        self.release_device();
        self.notifier.reset();
    }

    /// The connection failed for good. May sleep.
    fn fail(&self, error: &CtrlError) {
        self.release_device();
        self.enter(CtrlState::Dead, Some(error));
        let message = error.message();
        if self.is_deleting() {
            // Whoever removes it knows.
            self.log(format_args!("{message}"));
        } else {
            self.log_error(format_args!("{message}"));
        }
    }

    /// The controller's thread as the sender of commands on `queue`.
    fn thread_sender<'a>(&'a self, queue: &'a Connected<Queue>) -> ThreadSender<'a> {
        ThreadSender {
            queue,
            waiter: self,
            keep_alive: &self.keep_alive,
        }
    }

    /// Admin commands of the controller's thread on `queue`.
    fn admin<'a>(&'a self, queue: &'a Connected<Queue>, deadline: Deadline) -> Admin<'a> {
        Admin {
            sender: Sender::Thread(self.thread_sender(queue)),
            deadline,
        }
    }

    /// A line in the kernel's log, of what is as it should be.
    pub(crate) fn log(&self, message: core::fmt::Arguments<'_>) {
        pr_info!("{}: {}\n", self.name, message);
    }

    /// Likewise, of what somebody may have to see to.
    pub(crate) fn warn(&self, message: core::fmt::Arguments<'_>) {
        pr_warn!("{}: {}\n", self.name, message);
    }

    /// Likewise, of what somebody has to see to: it does not get better by itself.
    fn log_error(&self, message: core::fmt::Arguments<'_>) {
        pr_err!("{}: {}\n", self.name, message);
    }
}

/// The number of a controller in traces.
fn trace_id(name: CtrlName) -> i32 {
    match name {
        CtrlName::Discovery(_) => trace::DISCOVERY,
        // There are 256 at most.
        CtrlName::Device(number) => i32::try_from(number).unwrap_or(i32::MAX),
    }
}

impl Waiter for Controller {
    fn interruption(&self) -> Option<Interruption> {
        self.interruption()
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
        self.rdma_device
            .set(device)
            .map_err(|Removing| ConnError::DeviceRemoved)
    }
}
