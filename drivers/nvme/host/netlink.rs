// SPDX-License-Identifier: GPL-2.0

//! The interface to user space: a generic netlink family.
//!
//! Specification: `Documentation/netlink/specs/rnvmf.yaml`, of which [`uapi`] is
//! made. A request sees the controllers of its own network namespace.

mod encode;
mod request;

use crate::{
    controller::{
        Controller,
        Discovery, //
    },
    event::Event,
    host::Host,
    uapi::{
        self,
        Command, //
    },
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
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
    type Context = Arc<Host>;
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
    const CLOSED: Option<fn(&Arc<Host>, &net::Namespace, u32)> =
        Some(|host, namespace, port| host.discoveries.forget(namespace, port));
}

/// The only multicast group.
const EVENTS: usize = 0;

/// Makes the family known. May sleep.
pub(crate) fn register(
    module: &'static ThisModule,
    host: Arc<Host>,
) -> Result<Arc<Registration<Family>>> {
    Arc::pin_init(Registration::new(Ok(host), module), GFP_KERNEL)
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
pub(crate) fn tell(family: &Registration<Family>, controller: &Controller, event: Event<'_>) {
    let namespace = &controller.options.namespace;
    let command = command(&event) as u8;
    let aer_done = family.multicast(namespace, EVENTS, command, |message| match event {
        Event::NamespaceAdded(namespace)
        | Event::NamespaceChanged(namespace)
        | Event::NamespaceRemoved(namespace) => encode::namespace(message, controller, namespace),
        _ => encode::controller(message, controller),
    });
    if let Err(error) = aer_done {
        // Listeners find out that they missed it.
        pr_debug!(
            "{}: event not sent ({})\n",
            controller.name,
            error.to_errno()
        );
    }
}

/// Tells who listens in the network namespace of a discovery what came of it. May sleep.
pub(crate) fn tell_discovery(family: &Registration<Family>, discovery: &Discovery) {
    let command = Command::DiscoverNtf as u8;
    let aer_done = family.multicast(discovery.namespace(), EVENTS, command, |message| {
        encode::discovery(message, discovery)
    });
    if let Err(error) = aer_done {
        let error = error.to_errno();
        pr_debug!("discovery {}: event not sent ({})\n", discovery.id, error);
    }
}
