// SPDX-License-Identifier: GPL-2.0

//! The controllers and discoveries of the module.

use crate::{
    controller::{
        discovery::thread,
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
        Deadline,
        Msecs,
        Thread,
        TimedCompletion, //
    },
};

/// Most controllers; each has a thread.
const MAX_CONTROLLERS: u32 = 256;

/// The controllers and discoveries of the module.
///
/// [`close`](Self::close) removes the controllers, [`stop`](Self::stop) ends threads and services.
#[pin_data]
pub(crate) struct Registry {
    pub(crate) services: Arc<Services>,
    /// The threads of the controllers and discoveries, including some that have ended. `None` once
    /// stopped.
    #[pin]
    threads: Mutex<Option<KVec<Thread>>>,
    #[pin]
    controllers: Mutex<Controllers>,
    /// Held while a controller is added, or is removed and its removal notified: no name is reused
    /// before user space knows that it is free.
    #[pin]
    name_lock: Mutex<()>,
    #[pin]
    pub(crate) discoveries: Discoveries,
    /// Completed when the registry is closed and the last controller is off the list.
    #[pin]
    empty: TimedCompletion,
}

struct Controllers {
    /// In the order of IDs.
    list: KVec<Arc<Controller>>,
    /// The last ID that was assigned.
    last_id: u32,
    closed: bool,
}

impl Controllers {
    /// Returns an ID that was not used recently, so that a stale ID names no other controller.
    fn new_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if self.list.iter().all(|c| c.id != self.last_id) {
                return self.last_id;
            }
        }
    }

    /// Returns the lowest free number; `None` if there are [`MAX_CONTROLLERS`].
    fn free_number(&self) -> Option<u32> {
        let taken = |number| self.list.iter().any(|c| c.name.number() == number);
        (0..MAX_CONTROLLERS).find(|number| !taken(*number))
    }
}

/// Reason why a controller is not added.
pub(crate) enum InsertError {
    /// Exactly one of host NQN and host ID matches the controller of this name.
    HostIdConflict(HostIdConflict, CtrlName),
    Other(Error),
}

impl From<Error> for InsertError {
    fn from(error: Error) -> Self {
        Self::Other(error)
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
    /// Creates an empty registry with events to `events`, and registers with the RDMA core. May
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
            .and_then(|()| registry.start_deadlines())
            .inspect_err(|_| registry.stop())?;
        Ok(registry)
    }

    /// Refuses new controllers and discoveries, and removes all existing ones. Their events are
    /// sent when it returns. Sleeps.
    pub(crate) fn close(&self) {
        let busy = {
            let mut controllers = self.controllers.lock();
            controllers.closed = true;
            for controller in &controllers.list {
                controller.delete();
            }
            !controllers.list.is_empty()
        };
        self.discoveries.close();
        // No controller is added any more, and removal of the last one completes this.
        if busy {
            self.empty.wait();
        }
        // Held by a removal until user space is notified.
        drop(self.name_lock.lock());
    }

    /// Ends the threads and services. Called after [`close`](Self::close), when user space cannot
    /// reach the registry any more. Sleeps.
    pub(crate) fn stop(&self) {
        // Drop without the lock: this waits for threads, which may take the lock before they end.
        let threads = self.threads.lock().take();
        drop(threads);
        self.services.stop();
    }

    /// Starts the thread that acts on time limits of the controllers.
    fn start_deadlines(self: &Arc<Self>) -> Result {
        let (this, stopped) = (self.clone(), self.services.clone());
        let stop = move || stopped.deadlines.stop();
        self.spawn(fmt!("rnvmf-deadlines"), stop, move || {
            // A write that the thread releases may be one that memory reclaim waits for.
            memory::without_io(|| this.services.deadlines.run(|| this.act_on_deadlines()));
        })
    }

    /// Acts on the time limits of all controllers that have expired, and returns the next one.
    fn act_on_deadlines(&self) -> Deadline {
        let (mut next, mut from) = (Deadline::NEVER, 0);
        while let Some(controller) = self.next_where(from, |_| true) {
            next = next.min(controller.act_on_deadlines());
            from = u64::from(controller.id).saturating_add(1);
        }
        next
    }

    /// Adds a controller and starts to connect it. May sleep.
    ///
    /// # Errors
    ///
    /// - [`InsertError::HostIdConflict`].
    /// - [`EALREADY`](rrdma::errno::EALREADY) if a controller has the same connection and
    ///   `duplicate` is not set.
    /// - [`ESHUTDOWN`](rrdma::errno::ESHUTDOWN) once closed, `EBUSY` for too many controllers,
    ///   `ENOMEM`.
    pub(crate) fn connect(
        self: &Arc<Self>,
        options: Options,
        settings: Settings,
        duplicate: bool,
    ) -> Result<Arc<Controller>, InsertError> {
        let controller = self.insert(options, settings, duplicate)?;
        controller.notify(Event::Added);
        let (this, running, deleted) = (self.clone(), controller.clone(), controller.clone());
        let run = move || {
            CtrlThread::run(running.clone());
            this.remove(&running);
        };
        let stop = move || deleted.delete();
        if let Err(error) = self.spawn(fmt!("{}", controller.name), stop, run) {
            self.remove(&controller);
            return Err(error.into());
        }
        Ok(controller)
    }

    /// Starts to read the log of a discovery controller, for the socket with port `owner`. With
    /// `persistent`, the longest delay between attempts to connect, the log is followed. May sleep.
    ///
    /// # Errors
    ///
    /// `EBUSY` for too many discoveries; `ENOMEM`.
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
        let (this, running, cancelled) = (self.clone(), discovery.clone(), discovery.clone());
        let run = move || {
            thread::run(&running);
            this.discoveries.over(&running);
            running.complete();
        };
        let stop = move || cancelled.cancel();
        if let Err(error) = self.spawn(fmt!("rnvmf-log{}", discovery.id), stop, run) {
            self.discoveries.leave(&discovery);
            // Discoveries::close() may wait for its completion.
            discovery.complete();
            return Err(error);
        }
        Ok(discovery)
    }

    /// Starts a thread and keeps it. `stop` makes `run` return.
    fn spawn(
        &self,
        name: fmt::Arguments<'_>,
        stop: impl Fn() + Send + 'static,
        run: impl FnOnce() + Send + 'static,
    ) -> Result {
        let mut threads = self.threads.lock();
        let Some(threads) = &mut *threads else {
            return Err(rrdma::errno::ESHUTDOWN);
        };
        threads.retain(|thread| !thread.is_over());
        threads.reserve(1, GFP_KERNEL)?;
        threads.push(Thread::spawn(name, stop, run)?, GFP_KERNEL)?;
        Ok(())
    }

    fn insert(
        self: &Arc<Self>,
        options: Options,
        settings: Settings,
        duplicate: bool,
    ) -> Result<Arc<Controller>, InsertError> {
        // Allocations must not wait for I/O here: I/O may be held until a request of user space,
        // which takes these locks, changes or removes its controller.
        memory::without_io(|| {
            let _name_guard = self.name_lock.lock();
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
                if let Some(conflict) = options.host_id_conflict(&other.options) {
                    return Err(InsertError::HostIdConflict(conflict, other.name));
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
            controllers
                .list
                .reserve(1, GFP_KERNEL)
                .map_err(Error::from)?;
            controllers
                .list
                .insert_within_capacity(place, controller.clone())
                .map_err(|_| ENOMEM)?;
            self.services.changes.count();
            Ok(controller)
        })
    }

    /// Removes a controller from the list, and notifies user space.
    fn remove(&self, controller: &Arc<Controller>) {
        // As in `insert`.
        memory::without_io(|| {
            let _name_guard = self.name_lock.lock();
            {
                let mut controllers = self.controllers.lock();
                controllers.list.retain(|c| !Arc::ptr_eq(c, controller));
                self.services.changes.count();
                if controllers.closed && controllers.list.is_empty() {
                    self.empty.complete_all();
                }
            }
            controller.notify(Event::Removed);
        });
    }

    /// Returns the controller with this ID in a network namespace.
    pub(crate) fn find(&self, namespace: &net::Namespace, id: u32) -> Option<Arc<Controller>> {
        let controllers = self.controllers.lock();
        let mut list = controllers.list.iter();
        list.find(|c| c.id == id && c.options.namespace == *namespace)
            .cloned()
    }

    /// Returns the first controller in a network namespace whose ID is `from` or more.
    pub(crate) fn next(&self, namespace: &net::Namespace, from: u64) -> Option<Arc<Controller>> {
        self.next_where(from, |c| c.options.namespace == *namespace)
    }

    /// Returns the first controller whose ID is `from` or more, and that `is_wanted` accepts.
    fn next_where(
        &self,
        from: u64,
        is_wanted: impl Fn(&Controller) -> bool,
    ) -> Option<Arc<Controller>> {
        let controllers = self.controllers.lock();
        let mut list = controllers.list.iter();
        list.find(|c| u64::from(c.id) >= from && is_wanted(c))
            .cloned()
    }
}
