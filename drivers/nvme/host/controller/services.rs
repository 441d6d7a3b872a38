// SPDX-License-Identifier: GPL-2.0

//! What the module gives to its controllers.
//!
//! A controller reaches what is above it by [`Services`] only: it knows neither the registry of
//! controllers nor netlink.

use super::{
    discovery::DiscoveryResult,
    status::Status, //
};
use crate::{
    event::Event,
    name::CtrlName,
    namespace::{
        DiskGeneration,
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
    net::Namespace,
    rdma::{
        client,
        device::{
            Device,
            DeviceRef, //
        },
    },
    sync::{
        OwnedQueue,
        QueueFlags, //
    },
    sysfs::Class, //
};

/// A controller, as an event shows it.
pub(crate) struct CtrlView<'a> {
    pub(crate) id: u32,
    pub(crate) name: CtrlName,
    pub(crate) options: &'a Options,
    pub(crate) settings: Settings,
    /// Namespaces with a disk.
    pub(crate) namespaces: u32,
    pub(crate) status: &'a Status,
}

/// A discovery, as an event shows it.
pub(crate) struct DiscoveryView<'a> {
    pub(crate) id: u32,
    pub(crate) net: &'a Namespace,
    /// `None` until the log was read, or that failed.
    pub(crate) result: Option<&'a DiscoveryResult>,
}

/// Where events of controllers and discoveries go.
pub(crate) trait EventSink: Send + Sync {
    /// A controller, or one of its namespaces, has changed. May sleep.
    fn notify(&self, ctrl: &CtrlView<'_>, event: Event<'_>);

    /// A discovery has a new result. May sleep.
    fn notify_discovery(&self, discovery: &DiscoveryView<'_>);
}

/// Who is called when an RDMA device is removed.
pub(crate) trait DeviceRemoval: Send + Sync {
    /// Reports the removal to each controller that uses `device`. May sleep.
    fn removing(&self, device: &Device);
}

/// The client of the RDMA core.
struct Client;

impl client::Client for Client {
    const NAME: &'static CStr = c"rnvmf";

    type Context = Arc<dyn DeviceRemoval>;

    fn removing(context: &Self::Context, device: &Device) {
        context.removing(device);
    }
}

/// What the module gives to its controllers. [`Services::stop`] ends it.
#[pin_data]
pub(crate) struct Services {
    pub(crate) module: &'static ThisModule,
    /// The class of the controllers in sysfs.
    pub(crate) class: Arc<Class>,
    /// The device numbers of the controllers.
    pub(crate) numbers: Arc<Numbers>,
    /// The identifiers of the disks of all controllers.
    pub(crate) ids: Arc<IdRegistry>,
    pub(crate) events: Arc<dyn EventSink>,
    /// Counts changes of which disks there are.
    pub(crate) disk_generation: Arc<DiskGeneration>,
    /// Runs scan work and sends uevents. `None` once stopped.
    #[pin]
    work: Mutex<Option<OwnedQueue>>,
    /// `None` until [`start`](Self::start), and once stopped.
    #[pin]
    client: Mutex<Option<Arc<client::Registration<Client>>>>,
}

impl Services {
    /// Allocates all but the client. May sleep.
    pub(crate) fn new(
        module: &'static ThisModule,
        numbers: Arc<Numbers>,
        events: Arc<dyn EventSink>,
    ) -> Result<Arc<Self>> {
        // A controller has one scan work at a time. max_active is divided among NUMA nodes, and
        // work that waits for one target must not delay other controllers: use the maximum.
        let flags = QueueFlags::UNBOUND | QueueFlags::MEM_RECLAIM;
        let work = OwnedQueue::new(c"rnvmf", flags, OwnedQueue::MAX_ACTIVE)?;
        Arc::pin_init(
            try_pin_init!(Self {
                module,
                class: Class::new(c"rnvmf")?,
                numbers,
                ids: IdRegistry::new()?,
                events,
                disk_generation: Arc::new(DiskGeneration::new(), GFP_KERNEL)?,
                work <- new_mutex!(Some(work), "rnvmf::Services::work"),
                client <- new_mutex!(None, "rnvmf::Services::client"),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Registers with the RDMA core. May sleep.
    pub(crate) fn start(&self, removal: Arc<dyn DeviceRemoval>) -> Result {
        let client = Arc::pin_init(client::Registration::new(removal), GFP_KERNEL)?;
        *self.client.lock() = Some(client);
        Ok(())
    }

    /// Waits for the work and unregisters from the RDMA core. Sleeps.
    pub(crate) fn stop(&self) {
        // Each is dropped without its lock, which work and callbacks may want.
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
        // The queue exists as long as there are controllers.
        if let Some(work) = &*self.work.lock() {
            let _ = work.enqueue(item);
        }
    }

    /// A counted use of `device`; `None` if the device is being removed.
    pub(crate) fn acquire(&self, device: &Device) -> Option<DeviceRef> {
        let client = self.client.lock().clone();
        client?.acquire(device)
    }

    /// The generation of controllers and disks; `list` is that of the controllers. Not 0.
    pub(crate) fn generation_of_disks(&self, list: u32) -> u32 {
        list.wrapping_add(self.disk_generation.get()).max(1)
    }
}
