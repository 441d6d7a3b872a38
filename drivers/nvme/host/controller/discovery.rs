// SPDX-License-Identifier: GPL-2.0

//! A discovery: the log of a discovery controller, read once or [followed](thread).
//!
//! A thread of its own connects the admin queue of the discovery controller, which is on no list
//! and has no disks. The result is kept for the socket that started the discovery.

mod log;
pub(crate) mod thread;

pub(crate) use log::{
    DiscoveryResult,
    Log, //
};

use super::{Controller, DiscoveryView, Services};
use crate::{
    name::CtrlName,
    options::{
        Limit,
        Options,
        QuiesceTime,
        Settings, //
    },
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use rrdma::{
    memory,
    net::Namespace,
    rdma::device::Device,
    sync::{
        Msecs,
        TimedCompletion, //
    },
};

/// A discovery.
#[pin_data]
pub(crate) struct Discovery {
    pub(crate) id: u32,
    /// Port of the socket that started the discovery.
    owner: u32,
    /// Longest pause between reconnect attempts; `None` to read the log once.
    persistent: Option<Msecs>,
    controller: Arc<Controller>,
    #[pin]
    status: Mutex<DiscoveryStatus>,
    /// Completed when the thread ends.
    #[pin]
    over: TimedCompletion,
}

struct DiscoveryStatus {
    /// The last result; `None` at first.
    result: Option<DiscoveryResult>,
    /// Changes with the result; not 0.
    generation: u32,
    /// No more results follow.
    over: bool,
}

impl Discovery {
    /// Creates a discovery whose thread does not run yet. May sleep.
    pub(crate) fn new(
        services: Arc<Services>,
        id: u32,
        options: Options,
        connect_timeout: Msecs,
        persistent: Option<Msecs>,
        owner: u32,
    ) -> Result<Arc<Self>> {
        // LogFollower reconnects; the reconnect policy is for controllers with disks.
        let settings = Settings {
            connect_timeout,
            reconnect_delay: 1,
            ctrl_loss_tmo: Limit::After(0),
            fast_io_fail_tmo: Limit::After(0),
            quiesce: QuiesceTime::NoHold,
        };
        let controller = Controller::new(services, id, CtrlName::Discovery(id), options, settings)?;
        Arc::pin_init(
            pin_init!(Self {
                id,
                owner,
                persistent,
                controller,
                status <- new_mutex!(DiscoveryStatus {
                    result: None,
                    generation: 1,
                    over: false,
                }, "rnvmf::Discovery::status"),
                over <- TimedCompletion::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether the socket with port `owner` started the discovery.
    pub(crate) fn is_of(&self, namespace: &Namespace, owner: u32) -> bool {
        self.owner == owner && *self.namespace() == *namespace
    }

    /// Returns the network namespace.
    pub(crate) fn namespace(&self) -> &Namespace {
        &self.controller.options.namespace
    }

    /// Returns the controller if it uses `device`. May sleep.
    pub(crate) fn controller_on(&self, device: &Device) -> Option<&Controller> {
        Some(&*self.controller).filter(|controller| controller.uses(device))
    }

    /// Cancels the discovery. Any context.
    pub(crate) fn cancel(&self) {
        self.controller.delete();
    }

    /// Returns whether the discovery was cancelled. Any context.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.controller.is_deleting()
    }

    /// Returns whether no more results follow. May sleep.
    pub(crate) fn is_over(&self) -> bool {
        self.status.lock().over
    }

    /// Waits for [`complete`](Self::complete). Sleeps.
    pub(crate) fn wait(&self) {
        self.over.wait();
    }

    /// Ends [`wait`](Self::wait): the thread ends or did not start. Any context.
    pub(crate) fn complete(&self) {
        self.over.complete_all();
    }

    /// Calls `read` with the result, which cannot change meanwhile. May sleep.
    pub(crate) fn with_view<R>(&self, read: impl FnOnce(&DiscoveryView<'_>) -> R) -> R {
        let status = self.status.lock();
        read(&DiscoveryView {
            id: self.id,
            net: self.namespace(),
            result: status.result.as_ref(),
            generation: status.generation,
        })
    }

    /// Keeps a result that is not the last, and sends an event. May sleep.
    fn update(&self, result: DiscoveryResult) {
        self.set(result, false);
    }

    /// Keeps the last result, and sends an event. May sleep.
    fn finish(&self, result: DiscoveryResult) {
        self.set(result, true);
    }

    fn set(&self, result: DiscoveryResult, over: bool) {
        {
            let mut status = self.status.lock();
            *status = DiscoveryStatus {
                result: Some(result),
                generation: status.generation.wrapping_add(1).max(1),
                over,
            };
        }
        let events = &self.controller.services.events;
        // I/O may wait for the removal of a device, which takes the lock of the status.
        memory::without_io(|| self.with_view(|view| events.notify_discovery(view)));
    }
}
