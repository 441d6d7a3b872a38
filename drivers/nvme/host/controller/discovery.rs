// SPDX-License-Identifier: GPL-2.0

//! A discovery: the log of a discovery controller, read once, or followed.
//!
//! The controller is on no list and has no disks. It is connected as others are, but for its
//! admin queue only, by a thread of its own, and gone when the log is read or that failed, or, if
//! it is [followed](follow), when that is not wanted any more. What was read is kept for the
//! socket that asked.

mod log;
mod persistent;

pub(crate) use log::Log;

use super::{
    setup,
    Admin,
    Controller,
    Sender, //
    Services,
};
use crate::{
    ctrl_error::CtrlError,
    name::CtrlName,
    options::{
        Limit,
        Options,
        Settings, //
    },
    uapi::ErrorStage,
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
    errno,
    net::Namespace,
    rdma::device::Device,
    sync::{
        Deadline,
        Msecs,
        TimedCompletion, //
    },
};

/// Where all failures of a log happen.
const STAGE: ErrorStage = ErrorStage::Discovery;

/// How long the controller may take to shut down.
const SHUTDOWN: Msecs = Msecs::from_secs(5);

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
    status: Mutex<CtrlStatus>,
    #[pin]
    over: TimedCompletion,
}

/// What others see of a discovery.
struct CtrlStatus {
    /// What came of it last; `None` at first.
    latest: Option<DiscoveryResult>,
    /// Changes with that; not 0.
    generation: u32,
    /// Nothing comes any more.
    over: bool,
}

/// What came of a discovery.
pub(crate) enum DiscoveryResult {
    Read(Log),
    /// And when it goes on, if it does.
    Failed(CtrlError, Option<Deadline>),
}

impl From<Result<Log, CtrlError>> for DiscoveryResult {
    fn from(result: Result<Log, CtrlError>) -> Self {
        match result {
            Ok(log) => Self::Read(log),
            Err(failure) => Self::Failed(failure, None),
        }
    }
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
                status <- new_mutex!(CtrlStatus {
                    latest: None,
                    generation: 1,
                    over: false,
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
        self.status.lock().over
    }

    /// Waits until it is over. Sleeps.
    pub(crate) fn wait(&self) {
        self.over.wait();
    }

    /// Its thread ends here, or there is none: ends [`wait`](Self::wait). Any context.
    pub(crate) fn complete(&self) {
        self.over.complete_all();
    }

    /// What came of it last, `None` while nothing did, and a number that changes with that and is
    /// not 0.
    pub(crate) fn outcome<R>(&self, look: impl FnOnce(Option<&DiscoveryResult>, u32) -> R) -> R {
        let status = self.status.lock();
        look(status.latest.as_ref(), status.generation)
    }

    /// From connecting to when nothing is left of the connection. Sleeps.
    pub(crate) fn run(this: &Arc<Self>) {
        let controller = &*this.controller;
        let last = match this.persistent {
            Some(longest) => Err(this.follow(longest)),
            None => Self::read(controller),
        };
        let last = last.map_err(|failure| match controller.is_deleting() {
            true => CtrlError::new(
                failure.stage,
                errno::ECANCELED,
                format_args!("the discovery was cancelled"),
            ),
            false => failure,
        });
        controller.release_device();
        this.show(last.into(), true);
    }

    /// Keeps what came of it, and tells.
    fn show(&self, outcome: DiscoveryResult, over: bool) {
        {
            let mut status = self.status.lock();
            *status = CtrlStatus {
                latest: Some(outcome),
                generation: status.generation.wrapping_add(1).max(1),
                over,
            };
        }
        self.controller.services.events.notify_discovery(self);
    }

    #[inline(never)]
    fn read(controller: &Controller) -> Result<Log, CtrlError> {
        let deadline = Deadline::after(controller.settings().connect_timeout);
        let (queue, configuration) = setup::connect_admin(controller, deadline)?;
        let admin = |deadline| Admin {
            sender: Sender::Thread(&queue),
            controller,
            deadline,
        };
        let log = Log::read(&admin(deadline))?;
        // It is a courtesy: what goes wrong changes nothing, the connection ends in any case.
        if let Err(failure) = admin(Deadline::after(SHUTDOWN)).shut_down(configuration) {
            let message = failure.message();
            pr_debug!("{}: shutdown: {}\n", controller.name, message);
        }
        Ok(log)
    }
}
