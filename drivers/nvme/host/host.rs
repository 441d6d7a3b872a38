// SPDX-License-Identifier: GPL-2.0

//! What the module has for all controllers.

use crate::{
    controller::{
        Controller,
        CtrlDevice, //
        Discovery,
    },
    discoveries::Discoveries,
    error_notifier::ConnError,
    event::Event,
    id_registry::IdRegistry,
    name::CtrlName,
    netlink::{
        self,
        Family, //
    },
    options::{
        HostIdConflict,
        Options,
        Settings, //
    },
};
use kernel::{
    alloc::AllocError,
    fmt, new_mutex,
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc,
        Mutex, //
    },
};
use rrdma::{
    chrdev::Numbers,
    memory,
    net,
    netlink::Registration,
    rdma::{
        client,
        device::{
            Device,
            DeviceRef, //
        },
    },
    sync::{
        Msecs,
        OwnedQueue,
        QueueFlags,
        Thread,
        TimedCompletion, //
    },
    sysfs::Class, //
};

/// Most controllers: each is a thread.
const MAX_CONTROLLERS: u32 = 256;

/// The controllers, and what they need of the module.
///
/// Ends in this order, see [`Host::stop`]: no more controllers, no more requests
/// of users, no more devices.
#[pin_data]
pub(crate) struct Host {
    pub(crate) module: &'static ThisModule,
    /// The controllers in sysfs.
    pub(crate) class: Arc<Class>,
    /// Their device numbers.
    pub(crate) numbers: Arc<Numbers>,
    /// The threads of the controllers and discoveries, and some that have ended; they are taken
    /// to wait for their end.
    #[pin]
    threads: Mutex<Option<KVec<Thread>>>,
    /// The errands of the controllers run here, and udev is told; it is taken to end them.
    #[pin]
    scan_queue: Mutex<Option<OwnedQueue>>,
    #[pin]
    client: Mutex<Option<Arc<client::Registration<Client>>>>,
    #[pin]
    family: Mutex<Option<Arc<Registration<Family>>>>,
    #[pin]
    controllers: Mutex<Controllers>,
    /// Held by who puts a controller on the list, or takes it off and tells: no name is given again
    /// before everybody was told that it is free.
    #[pin]
    name_lock: Mutex<()>,
    /// Changes with which disks there are, and those of a controller only while they are locked.
    disks: Atomic<u32>,
    #[pin]
    pub(crate) ids: IdRegistry,
    #[pin]
    pub(crate) discoveries: Discoveries,
    /// The last controller is gone, and none comes.
    #[pin]
    empty: TimedCompletion,
}

struct Controllers {
    /// In the order of their ids.
    list: KVec<Arc<Controller>>,
    /// What the last one got.
    last_id: u32,
    /// So many are off the list, which is yet to be told.
    leaving: usize,
    /// Changes with the list.
    generation: u32,
    closed: bool,
}

impl Controllers {
    fn is_empty(&self) -> bool {
        self.list.is_empty() && self.leaving == 0
    }

    /// An id that was not given for long: who asks for one that is gone, or hears of it late, does
    /// not get another one.
    fn new_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if self.list.iter().all(|c| c.id != self.last_id) {
                return self.last_id;
            }
        }
    }

    /// The first number that is in no name, if there may be one more.
    fn free_number(&self) -> Option<u32> {
        let taken = |number| self.list.iter().any(|c| c.name.number() == number);
        (0..MAX_CONTROLLERS).find(|number| !taken(*number))
    }
}

/// Why a controller is not connected.
pub(crate) enum InsertError {
    /// Of the host's identity half is that of the controller of this name.
    HostIdConflict(HostIdConflict, CtrlName),
    Other(Error),
}

impl From<Error> for InsertError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<AllocError> for InsertError {
    fn from(error: AllocError) -> Self {
        Self::Other(error.into())
    }
}

/// We as a client of RDMA devices.
struct Client;

impl client::Client for Client {
    const NAME: &'static CStr = c"rnvmf";

    type Context = Arc<Host>;

    fn removing(host: &Arc<Host>, device: &Device) {
        for controller in &host.controllers.lock().list {
            if controller.uses(device) {
                controller.notifier.report(ConnError::DeviceRemoved);
            }
        }
        host.discoveries.removing(device);
    }
}

impl Host {
    /// Starts everything. May sleep.
    pub(crate) fn start(module: &'static ThisModule) -> Result<Arc<Self>> {
        // A controller has one errand at a time, but each NUMA node has a share of the room only,
        // and errands that wait for a target must not keep those of other controllers out.
        let flags = QueueFlags::UNBOUND | QueueFlags::MEM_RECLAIM;
        let scan_queue = OwnedQueue::new(c"rnvmf", flags, OwnedQueue::MAX_ACTIVE)?;
        let host = Arc::pin_init(
            try_pin_init!(Self {
                module,
                class: Class::new(c"rnvmf")?,
                numbers: Numbers::new(c"rnvmf", MAX_CONTROLLERS)?,
                threads <- new_mutex!(Some(KVec::new()), "rnvmf::Host::threads"),
                scan_queue <- new_mutex!(Some(scan_queue), "rnvmf::Host::scan_queue"),
                client <- new_mutex!(None, "rnvmf::Host::client"),
                family <- new_mutex!(None, "rnvmf::Host::family"),
                controllers <- new_mutex!(Controllers {
                    list: KVec::new(),
                    last_id: 0,
                    leaving: 0,
                    generation: 1,
                    closed: false,
                }, "rnvmf::Host::controllers"),
                name_lock <- new_mutex!((), "rnvmf::Host::name_lock"),
                disks: Atomic::new(0),
                ids <- IdRegistry::new(),
                discoveries <- Discoveries::new(),
                empty <- TimedCompletion::new(),
            }? Error),
            GFP_KERNEL,
        )?;
        host.register().inspect_err(|_| host.stop())?;
        Ok(host)
    }

    fn register(self: &Arc<Self>) -> Result {
        let client = Arc::pin_init(client::Registration::new(self.clone()), GFP_KERNEL)?;
        *self.client.lock() = Some(client);
        let family = netlink::register(self.module, self.clone())?;
        *self.family.lock() = Some(family);
        Ok(())
    }

    /// Removes all controllers and ends everything. Sleeps.
    pub(crate) fn stop(&self) {
        let busy = {
            let mut controllers = self.controllers.lock();
            controllers.closed = true;
            for controller in &controllers.list {
                controller.delete();
            }
            !controllers.is_empty()
        };
        self.discoveries.close();
        // None is added any more, and the last one completes this. Who listens
        // hears of all of it.
        if busy {
            self.empty.wait();
        }
        // Each is taken out first and dropped without its lock, which whoever is
        // waited for may want: requests under way, threads on their last lines.
        let family = self.family.lock().take();
        if let Some(family) = family {
            // A request that tells something has it, too, and must not be the one who ends it.
            family.unregister();
        }
        let threads = self.threads.lock().take();
        drop(threads);
        let scan_queue = self.scan_queue.lock().take();
        drop(scan_queue);
        let client = self.client.lock().take();
        drop(client);
    }

    /// Makes a controller and starts to connect it. May sleep.
    ///
    /// # Errors
    ///
    /// [`InsertError::HostIdConflict`]; [`EALREADY`](rrdma::errno::EALREADY) if there is one of the same
    /// connection and `duplicate` is not set; `EBUSY` for too many; `ENOMEM`.
    pub(crate) fn connect(
        self: &Arc<Self>,
        options: Options,
        settings: Settings,
        duplicate: bool,
    ) -> Result<Arc<Controller>, InsertError> {
        let controller = self.insert(options, settings, duplicate)?;
        self.tell(&controller, Event::Added);
        let life = controller.clone();
        let run = move || Controller::run(&life);
        if let Err(error) = self.spawn(fmt!("{}", controller.name), run) {
            self.remove(&controller);
            return Err(error.into());
        }
        Ok(controller)
    }

    /// Starts to read the log of a discovery controller, or to follow it if that is `persistent`,
    /// for the socket of a port. May sleep.
    ///
    /// # Errors
    ///
    /// `EBUSY` for too many; `ENOMEM`.
    pub(crate) fn discover(
        self: &Arc<Self>,
        options: Options,
        connect_timeout: Msecs,
        persistent: Option<Msecs>,
        owner: u32,
    ) -> Result<Arc<Discovery>> {
        let namespace = options.namespace.clone();
        let discovery = self.discoveries.insert(&namespace, owner, |id| {
            Discovery::new(
                self.clone(),
                id,
                options,
                connect_timeout,
                persistent,
                owner,
            )
        })?;
        let life = discovery.clone();
        let run = move || Discovery::run(&life);
        if let Err(error) = self.spawn(fmt!("rnvmf-log{}", discovery.id), run) {
            self.discoveries.leave(&discovery);
            // Who closes them all may wait for it.
            discovery.never_ran();
            return Err(error);
        }
        Ok(discovery)
    }

    fn spawn(&self, name: fmt::Arguments<'_>, life: impl FnOnce() + Send + 'static) -> Result {
        let mut threads = self.threads.lock();
        let Some(threads) = &mut *threads else {
            return Err(rrdma::errno::ESHUTDOWN);
        };
        threads.retain(|thread| !thread.is_over());
        threads.reserve(1, GFP_KERNEL)?;
        threads.push(Thread::spawn(name, life)?, GFP_KERNEL)?;
        Ok(())
    }

    fn insert(
        self: &Arc<Self>,
        options: Options,
        settings: Settings,
        duplicate: bool,
    ) -> Result<Arc<Controller>, InsertError> {
        // I/O that memory waits for may be let go by who asks for a controller.
        memory::without_io(|| {
            let _naming = self.name_lock.lock();
            let mut controllers = self.controllers.lock();
            if controllers.closed {
                return Err(rrdma::errno::ESHUTDOWN.into());
            }
            let number = controllers.free_number().ok_or(EBUSY)?;
            let same = |c: &Arc<Controller>| c.options.same_connection(&options);
            if !duplicate && controllers.list.iter().any(same) {
                return Err(rrdma::errno::EALREADY.into());
            }
            for other in &controllers.list {
                if let Some(clash) = options.clash(&other.options) {
                    return Err(InsertError::HostIdConflict(clash, other.name));
                }
            }
            let id = controllers.new_id();
            let controller = Controller::new(
                self.clone(),
                id,
                CtrlName::Device(number),
                options,
                settings,
            )?;
            let after = controllers.list.iter().position(|c| c.id > id);
            let place = after.unwrap_or(controllers.list.len());
            controllers.list.reserve(1, GFP_KERNEL)?;
            controllers
                .list
                .insert_within_capacity(place, controller.clone())
                .map_err(|_| ENOMEM)?;
            controllers.generation = controllers.generation.wrapping_add(1).max(1);
            Ok(controller)
        })
    }

    /// Runs a controller's errand beside its thread. May sleep.
    pub(crate) fn queue_scan_work(&self, controller: Arc<Controller>) {
        // The queue is there as long as there are controllers, and a controller
        // has one errand at a time.
        if let Some(scan_queue) = &*self.scan_queue.lock() {
            let _ = scan_queue.enqueue(controller);
        }
    }

    /// Has udev told what is to be told of a controller. May sleep.
    pub(crate) fn queue_uevent(&self, ctrl_device: Arc<CtrlDevice>) {
        if let Some(scan_queue) = &*self.scan_queue.lock() {
            // If it is queued already it has not begun.
            let _ = scan_queue.enqueue(ctrl_device);
        }
    }

    /// Takes a controller off the list, and tells.
    pub(crate) fn remove(&self, controller: &Arc<Controller>) {
        let name_lock = self.name_lock.lock();
        {
            let mut controllers = self.controllers.lock();
            controllers.list.retain(|c| !Arc::ptr_eq(c, controller));
            controllers.leaving = controllers.leaving.saturating_add(1);
            controllers.generation = controllers.generation.wrapping_add(1).max(1);
        }
        self.tell(controller, Event::Removed);
        drop(name_lock);
        let mut controllers = self.controllers.lock();
        controllers.leaving = controllers.leaving.saturating_sub(1);
        if controllers.closed && controllers.is_empty() {
            self.empty.complete_all();
        }
    }

    /// The controller with this id in a network namespace.
    pub(crate) fn find(&self, namespace: &net::Namespace, id: u32) -> Option<Arc<Controller>> {
        let controllers = self.controllers.lock();
        let mut list = controllers.list.iter();
        list.find(|c| c.id == id && c.options.namespace == *namespace)
            .cloned()
    }

    /// The first controller in a network namespace whose id is `from` or
    /// more, and the generation of the list that it is in.
    pub(crate) fn next(
        &self,
        namespace: &net::Namespace,
        from: u64,
    ) -> (u32, Option<Arc<Controller>>) {
        let controllers = self.controllers.lock();
        let mut list = controllers.list.iter();
        let next = list.find(|c| u64::from(c.id) >= from && c.options.namespace == *namespace);
        (controllers.generation, next.cloned())
    }

    /// A controller has another disk, or one less.
    pub(crate) fn disks_changed(&self) {
        self.disks.add(1, ordering::Relaxed);
    }

    /// A generation of the controllers and their disks: `list` is that of the controllers. Not 0.
    pub(crate) fn generation_of_disks(&self, list: u32) -> u32 {
        list.wrapping_add(self.disks.load(ordering::Relaxed)).max(1)
    }

    /// A use of `device`, unless it is going away.
    pub(crate) fn acquire(&self, device: &Device) -> Option<DeviceRef> {
        let client = self.client.lock().clone();
        client?.acquire(device)
    }

    /// Tells who listens.
    pub(crate) fn tell(&self, controller: &Controller, event: Event<'_>) {
        let family = self.family.lock().clone();
        if let Some(family) = family {
            netlink::tell(&family, controller, event);
        }
    }

    /// Tells who listens what came of a discovery.
    pub(crate) fn tell_discovery(&self, discovery: &Discovery) {
        let family = self.family.lock().clone();
        if let Some(family) = family {
            netlink::tell_discovery(&family, discovery);
        }
    }
}
