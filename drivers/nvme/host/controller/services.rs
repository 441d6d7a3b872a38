// SPDX-License-Identifier: GPL-2.0

//! Services of the module for its controllers.
//!
//! A controller reaches the layers above it through [`Services`] only: it knows neither the
//! registry of controllers nor netlink.

use super::{
    deadlines::DeadlineTimer,
    discovery::DiscoveryResult,
    status::Status, //
};
use crate::{
    event::Event,
    name::CtrlName,
    namespace::{
        ChangeCount,
        IdRegistry, //
    },
    options::{
        Options,
        Settings, //
    },
};
use kernel::{
    new_mutex,
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        Mutex, //
    },
    workqueue::RawWorkItem,
};
use rrdma::{
    chrdev::Numbers,
    errno::ESHUTDOWN,
    memory,
    net::Namespace,
    rdma::{
        client,
        device::{
            Device,
            DeviceRef, //
        },
    },
    sync::{
        Deadline,
        OwnedQueue,
        WorkKind, //
    },
    sysfs::Class, //
};

/// The view of a controller that an event contains.
pub(crate) struct CtrlView<'a> {
    pub(crate) id: u32,
    pub(crate) name: CtrlName,
    pub(crate) options: &'a Options,
    pub(crate) settings: Settings,
    /// Number of namespaces with a disk.
    pub(crate) namespaces: u32,
    /// Number of writes that are held after a connection loss, and when they are released.
    pub(crate) held_writes: u32,
    pub(crate) held_writes_due: Deadline,
    pub(crate) status: &'a Status,
}

/// The view of a discovery that an event contains.
pub(crate) struct DiscoveryView<'a> {
    pub(crate) id: u32,
    pub(crate) net: &'a Namespace,
    /// `None` until the first read of the log ends.
    pub(crate) result: Option<&'a DiscoveryResult>,
    /// Changes with the result; not 0.
    pub(crate) generation: u32,
}

/// Receives events of controllers and discoveries.
pub(crate) trait EventSink: Send + Sync {
    /// Reports a change of a controller or of one of its namespaces. May sleep.
    fn notify(&self, ctrl: &CtrlView<'_>, event: Event<'_>);

    /// Reports a new result of a discovery. May sleep.
    fn notify_discovery(&self, discovery: &DiscoveryView<'_>);
}

/// Receives removals of RDMA devices.
pub(crate) trait DeviceRemoval: Send + Sync {
    /// Reports the removal to each controller that uses `device`. May sleep.
    fn removing(&self, device: &Device);
}

/// The module as a client of the RDMA core.
struct Client;

impl client::Client for Client {
    const NAME: &'static CStr = c"rnvmf";

    type Context = Arc<dyn DeviceRemoval>;

    fn removing(context: &Self::Context, device: &Device) {
        context.removing(device);
    }
}

/// Services of the module for its controllers. [`Services::stop`] ends them.
#[pin_data]
pub(crate) struct Services {
    pub(crate) module: &'static ThisModule,
    /// The class of the controllers in sysfs.
    pub(crate) class: Arc<Class>,
    /// The device numbers of the controllers.
    pub(crate) numbers: Arc<Numbers>,
    /// Identifiers of the namespaces that have disks, of all controllers.
    pub(crate) ids: Arc<IdRegistry>,
    pub(crate) events: Arc<dyn EventSink>,
    /// Counts changes of the list of controllers and of their disks.
    pub(crate) changes: Arc<ChangeCount>,
    /// Acts on time limits of the controllers.
    #[pin]
    pub(crate) deadlines: DeadlineTimer,
    /// Runs scan work and sends uevents. `None` once stopped.
    #[pin]
    work: Mutex<Option<OwnedQueue>>,
    /// `None` until [`start`](Self::start), and once stopped.
    #[pin]
    client: Mutex<Option<Arc<client::Registration<Client>>>>,
}

impl Services {
    /// Creates the services, not yet registered with the RDMA core. May sleep.
    pub(crate) fn new(
        module: &'static ThisModule,
        numbers: Arc<Numbers>,
        events: Arc<dyn EventSink>,
    ) -> Result<Arc<Self>> {
        // A controller has one scan work, and a partition scan for each disk. max_active is divided
        // among NUMA nodes, and work that waits for one target must not delay other controllers:
        // use the maximum.
        let work = OwnedQueue::new(c"rnvmf", WorkKind::MemReclaim, OwnedQueue::MAX_ACTIVE)?;
        Arc::pin_init(
            try_pin_init!(Self {
                module,
                class: Class::new(c"rnvmf")?,
                numbers,
                ids: IdRegistry::new()?,
                events,
                changes: Arc::new(ChangeCount::new(), GFP_KERNEL)?,
                deadlines <- DeadlineTimer::new(),
                work <- new_mutex!(Some(work), "rnvmf::Services::work"),
                client <- new_mutex!(None, "rnvmf::Services::client"),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Registers with the RDMA core. May sleep.
    pub(crate) fn start(&self, removal: Arc<dyn DeviceRemoval>) -> Result {
        let client = Arc::new(client::Registration::new(removal)?, GFP_KERNEL)?;
        *self.client.lock() = Some(client);
        Ok(())
    }

    /// Waits for queued work and unregisters from the RDMA core. Sleeps.
    pub(crate) fn stop(&self) {
        // Drop each without its lock, which work items and callbacks take.
        let work = self.work.lock().take();
        drop(work);
        let client = self.client.lock().take();
        drop(client);
    }

    /// Queues a work item of a controller, unless it is queued. May sleep.
    pub(crate) fn enqueue<W, const ID: u64>(&self, item: W)
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        // The queue exists as long as any controller does.
        if let Some(work) = &*self.work.lock() {
            let _ = work.enqueue(item);
        }
    }

    /// Runs `work` in a work item. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`;
    /// - `ESHUTDOWN`: the module is being unloaded.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) -> Result {
        // I/O may wait for a controller that takes this lock before its connection is recovered.
        memory::without_io(|| match &*self.work.lock() {
            Some(queue) => Ok(queue.try_spawn(GFP_KERNEL, work)?),
            None => Err(ESHUTDOWN),
        })
    }

    /// Takes a counted use of `device`; `None` if the device is being removed. May sleep.
    pub(crate) fn acquire(&self, device: &Device) -> Option<DeviceRef> {
        let client = self.client.lock().clone();
        client?.acquire(device)
    }

    /// Returns the generation of the controllers and their disks, which is not 0. Any context.
    pub(crate) fn generation(&self) -> u32 {
        self.changes.get().max(1)
    }
}
