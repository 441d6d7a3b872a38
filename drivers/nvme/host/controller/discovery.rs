// SPDX-License-Identifier: GPL-2.0

//! A discovery: the log of a discovery controller, read once, or followed.
//!
//! The controller is on no list and has no disks. It is connected as others are, but for its
//! admin queue only, by a thread of its own, and gone when the log is read or that failed, or, if
//! it is [followed](persistent), when that is not wanted any more. What was read is kept for the
//! socket that asked.

mod log;
mod persistent;
mod thread;

pub(crate) use log::{
    DiscoveryResult,
    Log, //
};
pub(crate) use thread::DiscoveryThread;

use super::{Controller, DiscoveryView, Services};
use crate::{
    name::CtrlName,
    options::{
        Limit,
        Options,
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
    /// The port of the socket that asked.
    owner: u32,
    /// The longest pause between attempts to connect, if the log is followed.
    persistent: Option<Msecs>,
    controller: Arc<Controller>,
    #[pin]
    status: Mutex<DiscoveryStatus>,
    #[pin]
    over: TimedCompletion,
}

/// What is shown of a discovery.
struct DiscoveryStatus {
    /// The last result; `None` at first.
    result: Option<DiscoveryResult>,
    /// Changes with the result; not 0.
    generation: u32,
    phase: Phase,
}

/// Whether more results come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Over,
}

impl Discovery {
    /// A discovery that does nothing yet; for whether it is `persistent` see the field. May sleep.
    pub(crate) fn new(
        services: Arc<Services>,
        id: u32,
        options: Options,
        connect_timeout: Msecs,
        persistent: Option<Msecs>,
        owner: u32,
    ) -> Result<Arc<Self>> {
        // ReconnectStatus is for controllers with disks: see [`follow`] for what is done here.
        let settings = Settings {
            connect_timeout,
            reconnect_delay: 1,
            give_up: Limit::After(0),
            fail_io: Limit::After(0),
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
                    phase: Phase::Running,
                }, "rnvmf::Discovery::status"),
                over <- TimedCompletion::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Whether a socket has asked for it.
    pub(crate) fn is_of(&self, namespace: &Namespace, owner: u32) -> bool {
        self.owner == owner && *self.namespace() == *namespace
    }

    /// The network namespace that it is in.
    pub(crate) fn namespace(&self) -> &Namespace {
        &self.controller.options.namespace
    }

    /// Its controller, if that has something on `device`.
    pub(crate) fn controller_on(&self, device: &Device) -> Option<&Controller> {
        Some(&*self.controller).filter(|controller| controller.uses(device))
    }

    /// Ends it, if it is not over. Any context.
    pub(crate) fn cancel(&self) {
        self.controller.delete();
    }

    /// Whether it was ended.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.controller.is_deleting()
    }

    /// Whether nothing comes of it any more. May sleep.
    pub(crate) fn is_over(&self) -> bool {
        self.status.lock().phase == Phase::Over
    }

    /// Waits until it is over. Sleeps.
    pub(crate) fn wait(&self) {
        self.over.wait();
    }

    /// Its thread ends here, or there is none: ends [`wait`](Self::wait). Any context.
    pub(crate) fn complete(&self) {
        self.over.complete_all();
    }

    /// The last result, `None` at first, and a number that changes with it and is not 0.
    pub(crate) fn with_result<R>(
        &self,
        read: impl FnOnce(Option<&DiscoveryResult>, u32) -> R,
    ) -> R {
        let status = self.status.lock();
        read(status.result.as_ref(), status.generation)
    }

    /// Calls `read` with the discovery as an event shows it. May sleep.
    pub(crate) fn with_view<R>(&self, read: impl FnOnce(&DiscoveryView<'_>) -> R) -> R {
        let status = self.status.lock();
        read(&DiscoveryView {
            id: self.id,
            net: self.namespace(),
            result: status.result.as_ref(),
        })
    }

    /// Keeps a result that is followed by others, and tells. May sleep.
    fn update(&self, result: DiscoveryResult) {
        self.set(result, Phase::Running);
    }

    /// Keeps the last result, and tells. May sleep.
    fn finish(&self, result: DiscoveryResult) {
        self.set(result, Phase::Over);
    }

    fn set(&self, result: DiscoveryResult, phase: Phase) {
        {
            let mut status = self.status.lock();
            *status = DiscoveryStatus {
                result: Some(result),
                generation: status.generation.wrapping_add(1).max(1),
                phase,
            };
        }
        let events = &self.controller.services.events;
        self.with_view(|view| events.notify_discovery(view));
    }
}
