// SPDX-License-Identifier: GPL-2.0

//! One controller, from connect to removal.
//!
//! A controller has a thread of its own, [`Controller::run`], and only this
//! thread makes and destroys what belongs to the connection, which lives on its
//! stack as a [`session::Session`]. Everything else raises the alarm or asks for
//! removal, and wakes the thread. So there is one setup and one teardown, and
//! neither can meet the other. The thread never waits for the disks' I/O, which
//! may need it: making and deleting disks is an [`errand`] beside it.
//!
//! ```text
//! New ─▶ Connecting ─▶ Live ─▶ Resetting ─▶ Dead ─▶ Deleting
//!             └────────────────────────────▲          ▲
//!                     (from any state, when removal is asked for)
//! ```

mod admin;
mod errand;
mod life;
mod session;
mod setup;

pub(crate) use admin::Admin;

use crate::{
    alarm::{
        Alarm,
        Trouble, //
    },
    failure::Failure,
    host::Host,
    io::Io,
    namespace::Namespace,
    netlink::Event,
    options::Options,
    queue::CommandError, //
};
use core::cmp;
use errand::Errand;
use kernel::{
    impl_has_work, new_mutex, new_work,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            AtomicFlag, //
        },
        Arc,
        Mutex, //
    },
    workqueue::Work,
};
use nvme_wire::{
    identify,
    property::Version,
    state::State, //
};
use rrdma::{
    block::TagSet,
    rdma::{
        cm::Patience,
        device::{
            self,
            Device,
            DeviceRef, //
        },
    },
    sync::{
        Deadline,
        Msecs,
        TimedCompletion, //
    },
};

/// How long one step of the connection manager may take, as in the C host.
const STEP: Msecs = Msecs::new(3000);

/// The longest sleep of a thread that waits for nothing in particular.
const IDLE: Msecs = Msecs::from_secs(3600);

/// A controller.
#[pin_data]
pub(crate) struct Controller {
    pub(crate) id: u32,
    pub(crate) options: Options,
    host: Arc<Host>,
    wake: Arc<TimedCompletion>,
    pub(crate) alarm: Arc<Alarm>,
    /// Removal is asked for.
    deleting: AtomicFlag,
    /// Removal is under way.
    removing: AtomicFlag,
    #[pin]
    shown: Mutex<Shown>,
    /// The device, while the controller has anything on it.
    #[pin]
    device: Mutex<Option<DeviceRef>>,
    /// The disks, which outlive a connection that is lost.
    #[pin]
    namespaces: Mutex<KVec<Namespace>>,
    /// What is done beside the controller's thread.
    #[pin]
    errand: Mutex<Errand>,
    #[pin]
    errand_work: Work<Controller>,
}

impl_has_work! {
    impl HasWork<Self> for Controller { self.errand_work }
}

/// What others see of a controller.
pub(crate) struct Shown {
    pub(crate) state: State,
    pub(crate) failure: Option<Failure>,
    pub(crate) facts: Option<Facts>,
    /// How many namespaces have a disk.
    pub(crate) namespaces: u32,
}

/// What is known of a controller once it is connected.
#[derive(Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) device: device::Name,
    pub(crate) identity: identify::Controller,
    pub(crate) io_queues: u16,
    pub(crate) queue_size: u16,
    pub(crate) max_sectors: u32,
    pub(crate) inline_size: u32,
}

/// What the disks of a controller are made from.
pub(crate) struct Inventory {
    pub(crate) tag_set: Arc<TagSet<Io>>,
    pub(crate) identity: identify::Controller,
    pub(crate) version: Version,
    /// Of the controller's smallest page, as a power of two.
    pub(crate) min_page_shift: u8,
    pub(crate) max_sectors: u32,
    pub(crate) max_segments: u16,
    /// When connecting must be over.
    pub(crate) deadline: Deadline,
}

impl Controller {
    /// A controller that does nothing yet. May sleep.
    pub(crate) fn new(host: Arc<Host>, id: u32, options: Options) -> Result<Arc<Self>> {
        let wake = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        let alarm = Alarm::new(wake.clone())?;
        Arc::pin_init(
            pin_init!(Self {
                id,
                options,
                host,
                wake,
                alarm,
                deleting: AtomicFlag::new(false),
                removing: AtomicFlag::new(false),
                shown <- new_mutex!(Shown {
                    state: State::New,
                    failure: None,
                    facts: None,
                    namespaces: 0,
                }, "rnvme::Controller::shown"),
                device <- new_mutex!(None, "rnvme::Controller::device"),
                namespaces <- new_mutex!(KVec::new(), "rnvme::Controller::namespaces"),
                errand <- new_mutex!(Errand::None, "rnvme::Controller::errand"),
                errand_work <- new_work!("rnvme::Controller::errand_work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Asks for removal. Any context.
    pub(crate) fn delete(&self) {
        self.deleting.store(true, ordering::Relaxed);
        self.wake.complete();
    }

    fn is_deleting(&self) -> bool {
        self.deleting.load(ordering::Relaxed)
    }

    /// Why the thread should stop waiting for the target. Any context.
    pub(crate) fn interruption(&self) -> Option<CommandError> {
        // What the removal itself asks of the target is not cancelled by it.
        if self.is_deleting() && !self.removing.load(ordering::Relaxed) {
            return Some(CommandError::Cancelled);
        }
        self.alarm.trouble().map(CommandError::Trouble)
    }

    /// Sleeps until there is something to look at, or `limit` is over.
    pub(crate) fn wait(&self, limit: Msecs) {
        // Fired or not, the caller looks again.
        let _ = self.wake.wait_timeout(limit);
    }

    /// Enters `state`, and tells. A change that may not be is a removal that
    /// came first.
    fn enter(&self, state: State, failure: Option<Failure>) {
        {
            let mut shown = self.shown.lock();
            if !shown.state.may_become(state) {
                return;
            }
            shown.state = state;
            shown.failure = failure.or(shown.failure);
        }
        self.host.tell(self, Event::Changed);
    }

    /// What others see of the controller.
    pub(crate) fn shown<R>(&self, look: impl FnOnce(&Shown) -> R) -> R {
        look(&self.shown.lock())
    }

    /// The controller's disks.
    pub(crate) fn with_namespaces<R>(&self, look: impl FnOnce(&[Namespace]) -> R) -> R {
        look(&self.namespaces.lock())
    }

    fn remove_namespaces(&self) {
        let namespaces = core::mem::take(&mut *self.namespaces.lock());
        self.shown.lock().namespaces = 0;
        for namespace in &namespaces {
            self.host.tell(self, Event::NamespaceRemoved(namespace));
        }
        // Deletes the disks, which waits for their I/O.
        drop(namespaces);
    }

    /// Takes a namespace with its disk, and tells.
    pub(crate) fn add_namespace(&self, namespace: Namespace) -> Result {
        let mut namespaces = self.namespaces.lock();
        namespaces.push(namespace, GFP_KERNEL)?;
        self.shown.lock().namespaces = namespaces.len().try_into()?;
        if let Some(namespace) = namespaces.last() {
            self.host.tell(self, Event::NamespaceAdded(namespace));
        }
        Ok(())
    }

    /// The module, which open disks keep loaded.
    pub(crate) fn module(&self) -> &'static ThisModule {
        self.host.module
    }

    /// Takes note of the device, unless it is already going away.
    fn use_device(&self, device: &DeviceRef) -> Result<(), Failure> {
        *self.device.lock() = Some(device.clone());
        // A removal that began before this could see it has set its mark.
        if device.is_removing() {
            return Err(Trouble::DeviceRemoved.into());
        }
        Ok(())
    }

    fn release_device(&self) {
        drop(self.device.lock().take());
    }

    /// Whether the controller has something on `device`.
    pub(crate) fn uses(&self, device: &Device) -> bool {
        let used = self.device.lock();
        used.as_ref().is_some_and(|used| **used == *device)
    }

    /// How long a step of connecting may take, and when it is no longer wanted.
    fn patience<'a>(&self, deadline: Deadline, cancelled: &'a dyn Fn() -> bool) -> Patience<'a> {
        Patience {
            limit: cmp::min(STEP, deadline.left()),
            total: self.options.connect_timeout,
            deadline,
            cancelled,
        }
    }

    /// A line in the kernel's log.
    pub(crate) fn log(&self, message: core::fmt::Arguments<'_>) {
        pr_info!("rnvme{}: {}\n", self.id, message);
    }
}
