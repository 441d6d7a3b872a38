// SPDX-License-Identifier: GPL-2.0

//! The controllers and discoveries of the module.

use crate::{
    controller::{
        discovery::DiscoveryThread,
        Controller,
        CtrlThread,
        DeviceRemoval,
        Discovery,
        EventSink,
        Services, //
    },
    discoveries::Discoveries,
    event::Event,
    name::CtrlName,
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
    sync::{
        Arc,
        Mutex, //
    },
};
use nvme_rdma_transport::conn_error::ConnError;
use rrdma::{
    chrdev::Numbers,
    memory, net,
    rdma::device::Device,
    sync::{
        Msecs,
        Thread,
        TimedCompletion, //
    },
};

/// Most controllers: each is a thread.
const MAX_CONTROLLERS: u32 = 256;

/// The controllers and discoveries of the module.
///
/// [`close`](Self::close) ends the controllers, [`stop`](Self::stop) their threads and services.
#[pin_data]
pub(crate) struct Registry {
    pub(crate) services: Arc<Services>,
    /// The threads of the controllers and discoveries, and some that have ended. `None` once all
    /// are waited for.
    #[pin]
    threads: Mutex<Option<KVec<Thread>>>,
    #[pin]
    controllers: Mutex<Controllers>,
    /// Held while a controller is put on the list, or taken off it and that is told: no name is
    /// given again before everybody was told that it is free.
    #[pin]
    name_lock: Mutex<()>,
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

impl DeviceRemoval for Registry {
    fn removing(&self, device: &Device) {
        for controller in &self.controllers.lock().list {
            if controller.uses(device) {
                controller.notifier.report(ConnError::DeviceRemoved);
            }
        }
        self.discoveries.removing(device);
    }
}

impl Registry {
    /// An empty registry, whose events go to `events`, and which is a client of the RDMA core. May
    /// sleep.
    pub(crate) fn start(
        module: &'static ThisModule,
        events: Arc<dyn EventSink>,
    ) -> Result<Arc<Self>> {
        let numbers = Numbers::new(c"rnvmf", MAX_CONTROLLERS)?;
        let services = Services::new(module, numbers, events)?;
        let registry = Arc::pin_init(
            pin_init!(Self {
                services,
                threads <- new_mutex!(Some(KVec::new()), "rnvmf::Registry::threads"),
                controllers <- new_mutex!(Controllers {
                    list: KVec::new(),
                    last_id: 0,
                    leaving: 0,
                    generation: 1,
                    closed: false,
                }, "rnvmf::Registry::controllers"),
                name_lock <- new_mutex!((), "rnvmf::Registry::name_lock"),
                discoveries <- Discoveries::new(),
                empty <- TimedCompletion::new(),
            }),
            GFP_KERNEL,
        )?;
        registry
            .services
            .start(registry.clone())
            .inspect_err(|_| registry.stop())?;
        Ok(registry)
    }

    /// Takes no more controllers and discoveries, and removes those that there are. Their events are
    /// sent before it returns. Sleeps.
    pub(crate) fn close(&self) {
        let busy = {
            let mut controllers = self.controllers.lock();
            controllers.closed = true;
            for controller in &controllers.list {
                controller.delete();
            }
            !controllers.is_empty()
        };
        self.discoveries.close();
        // None is added any more, and the last one completes this.
        if busy {
            self.empty.wait();
        }
    }

    /// Ends the threads and services, after [`close`](Self::close) and when user space cannot reach
    /// the registry any more. Sleeps.
    pub(crate) fn stop(&self) {
        // Taken out first: threads on their last lines may want the lock.
        let threads = self.threads.lock().take();
        drop(threads);
        self.services.stop();
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
        controller.notify(Event::Added);
        let (this, running) = (self.clone(), controller.clone());
        let run = move || {
            CtrlThread::run(running.clone());
            this.remove(&running);
        };
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
                self.services.clone(),
                id,
                options,
                connect_timeout,
                persistent,
                owner,
            )
        })?;
        let (this, running) = (self.clone(), discovery.clone());
        let run = move || {
            DiscoveryThread::new(&running).run();
            this.discoveries.over(&running);
            running.complete();
        };
        if let Err(error) = self.spawn(fmt!("rnvmf-log{}", discovery.id), run) {
            self.discoveries.leave(&discovery);
            // Discoveries::close() may wait for it.
            discovery.complete();
            return Err(error);
        }
        Ok(discovery)
    }

    fn spawn(&self, name: fmt::Arguments<'_>, run: impl FnOnce() + Send + 'static) -> Result {
        let mut threads = self.threads.lock();
        let Some(threads) = &mut *threads else {
            return Err(rrdma::errno::ESHUTDOWN);
        };
        threads.retain(|thread| !thread.is_over());
        threads.reserve(1, GFP_KERNEL)?;
        threads.push(Thread::spawn(name, run)?, GFP_KERNEL)?;
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
                self.services.clone(),
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

    /// Takes a controller off the list, and tells.
    fn remove(&self, controller: &Arc<Controller>) {
        let name_lock = self.name_lock.lock();
        {
            let mut controllers = self.controllers.lock();
            controllers.list.retain(|c| !Arc::ptr_eq(c, controller));
            controllers.leaving = controllers.leaving.saturating_add(1);
            controllers.generation = controllers.generation.wrapping_add(1).max(1);
        }
        controller.notify(Event::Removed);
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
}
