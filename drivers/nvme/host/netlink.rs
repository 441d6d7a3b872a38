// SPDX-License-Identifier: GPL-2.0

//! The interface to user space: a generic netlink family.
//!
//! Specification: `Documentation/netlink/specs/rnvmf.yaml`, of which [`uapi`] is
//! made. A request sees the controllers of its own network namespace.

mod encode;
mod request;

use crate::{
    controller::{
        CtrlView,
        DiscoveryView,
        EventSink, //
    },
    event::Event,
    registry::Registry,
    uapi::{
        self,
        Command, //
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
};
use rrdma::{
    net,
    netlink::{
        Operation,
        Registration, //
    },
};

/// The family.
pub(crate) struct Family;

impl rrdma::netlink::Family for Family {
    const NAME: &'static CStr = uapi::FAMILY;
    const VERSION: u8 = uapi::VERSION;
    type Context = Arc<Registry>;
    const OPERATIONS: &'static [Operation<Self>] = &[
        Operation {
            command: Command::Connect as u8,
            admin: true,
            attributes: uapi::CONNECT_DO,
            doit: Some(request::connect),
            dumpit: None,
        },
        Operation {
            command: Command::Disconnect as u8,
            admin: true,
            attributes: uapi::DISCONNECT_DO,
            doit: Some(request::disconnect),
            dumpit: None,
        },
        Operation {
            command: Command::CtrlGet as u8,
            admin: false,
            attributes: uapi::CTRL_GET_DO,
            doit: Some(request::get_controller),
            dumpit: None,
        },
        Operation {
            command: Command::CtrlGet as u8,
            admin: false,
            attributes: uapi::CTRL_GET_DUMP,
            doit: None,
            dumpit: Some(request::dump_controllers),
        },
        Operation {
            command: Command::NsGet as u8,
            admin: false,
            attributes: uapi::NS_GET_DO,
            doit: Some(request::get_namespace),
            dumpit: None,
        },
        Operation {
            command: Command::NsGet as u8,
            admin: false,
            attributes: uapi::NS_GET_DUMP,
            doit: None,
            dumpit: Some(request::dump_namespaces),
        },
        Operation {
            command: Command::CtrlReset as u8,
            admin: true,
            attributes: uapi::CTRL_RESET_DO,
            doit: Some(request::reset),
            dumpit: None,
        },
        Operation {
            command: Command::CtrlSet as u8,
            admin: true,
            attributes: uapi::CTRL_SET_DO,
            doit: Some(request::set),
            dumpit: None,
        },
        Operation {
            command: Command::Discover as u8,
            admin: true,
            attributes: uapi::DISCOVER_DO,
            doit: Some(request::discover),
            dumpit: None,
        },
        Operation {
            command: Command::DiscoverGet as u8,
            admin: false,
            attributes: uapi::DISCOVER_GET_DO,
            doit: Some(request::get_discovery),
            dumpit: Some(request::dump_entries),
        },
        Operation {
            command: Command::StatsGet as u8,
            admin: false,
            attributes: uapi::STATS_GET_DO,
            doit: Some(request::get_stats),
            dumpit: None,
        },
        Operation {
            command: Command::StatsGet as u8,
            admin: false,
            attributes: uapi::STATS_GET_DUMP,
            doit: None,
            dumpit: Some(request::dump_stats),
        },
        Operation {
            command: Command::StatsSet as u8,
            admin: true,
            attributes: uapi::STATS_SET_DO,
            doit: Some(request::set_stats),
            dumpit: None,
        },
        Operation {
            command: Command::CtrlRescan as u8,
            admin: true,
            attributes: uapi::CTRL_RESCAN_DO,
            doit: Some(request::rescan),
            dumpit: None,
        },
    ];
    const GROUPS: &'static [&'static CStr] = &[uapi::GROUP_EVENTS];
    const CLOSED: Option<fn(&Arc<Registry>, &net::Namespace, u32)> =
        Some(|registry, namespace, port| registry.discoveries.forget(namespace, port));
}

/// The only multicast group.
const EVENTS: usize = 0;

/// The family, and the sink of events that are multicast by it.
#[pin_data]
pub(crate) struct NetlinkEvents {
    /// `None` until [`start`](Self::start), and once stopped.
    #[pin]
    family: Mutex<Option<Arc<Registration<Family>>>>,
}

impl NetlinkEvents {
    /// Allocates it. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                family <- new_mutex!(None, "rnvmf::NetlinkEvents::family"),
            }),
            GFP_KERNEL,
        )
    }

    /// Registers the family. May sleep.
    pub(crate) fn start(&self, module: &'static ThisModule, registry: Arc<Registry>) -> Result {
        let family = Arc::pin_init(Registration::new(Ok(registry), module), GFP_KERNEL)?;
        *self.family.lock() = Some(family);
        Ok(())
    }

    /// Unregisters the family, and waits for its requests. Sleeps.
    pub(crate) fn stop(&self) {
        // Taken out first: requests may want the lock.
        let family = self.family.lock().take();
        if let Some(family) = family {
            // A request that sends an event holds a reference, and must not be the one to wait.
            family.unregister();
        }
    }

    fn family(&self) -> Option<Arc<Registration<Family>>> {
        self.family.lock().clone()
    }
}

impl EventSink for NetlinkEvents {
    fn notify(&self, ctrl: &CtrlView<'_>, event: Event<'_>) {
        if let Some(family) = self.family() {
            notify(&family, ctrl, event);
        }
    }

    fn notify_discovery(&self, discovery: &DiscoveryView<'_>) {
        if let Some(family) = self.family() {
            notify_discovery(&family, discovery);
        }
    }
}

/// The message that tells an event.
fn command(event: &Event<'_>) -> Command {
    match event {
        Event::Added => Command::CtrlAddNtf,
        Event::Changed => Command::CtrlChangeNtf,
        Event::Removed => Command::CtrlDelNtf,
        Event::NamespaceAdded(_) => Command::NsAddNtf,
        Event::NamespaceChanged(_) => Command::NsChangeNtf,
        Event::NamespaceRemoved(_) => Command::NsDelNtf,
    }
}

/// Tells who listens in the controller's network namespace. May sleep.
fn notify(family: &Registration<Family>, ctrl: &CtrlView<'_>, event: Event<'_>) {
    let net = &ctrl.options.namespace;
    let command = command(&event) as u8;
    let sent = family.multicast(net, EVENTS, command, |message| match event {
        Event::NamespaceAdded(namespace)
        | Event::NamespaceChanged(namespace)
        | Event::NamespaceRemoved(namespace) => encode::namespace(message, ctrl.id, namespace),
        _ => encode::controller(message, ctrl),
    });
    if let Err(error) = sent {
        // Listeners find out that they missed it.
        pr_debug!("{}: event not sent ({})\n", ctrl.name, error.to_errno());
    }
}

/// Tells who listens in the network namespace of a discovery what came of it. May sleep.
fn notify_discovery(family: &Registration<Family>, discovery: &DiscoveryView<'_>) {
    let command = Command::DiscoverNtf as u8;
    let sent = family.multicast(discovery.net, EVENTS, command, |message| {
        encode::discovery(message, discovery)
    });
    if let Err(error) = sent {
        let error = error.to_errno();
        pr_debug!("discovery {}: event not sent ({})\n", discovery.id, error);
    }
}
