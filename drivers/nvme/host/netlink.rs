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
        Attribute,
        Kind,
        Operation,
        Registration, //
    },
};

/// Lists operations: a request of the specification with the handler that does or dumps it.
macro_rules! operations {
    ($($request:ident: $doit:expr, $dumpit:expr;)*) => {
        &[$(Operation {
            command: uapi::$request.command,
            admin: uapi::$request.admin,
            attributes: &policy::<{ uapi::$request.attributes.len() }>(&uapi::$request),
            doit: $doit,
            dumpit: $dumpit,
        }),*]
    };
}

/// Returns the attributes of a request as the kernel checks them.
const fn policy<const N: usize>(request: &uapi::Request) -> [Attribute; N] {
    let mut policy = [Attribute {
        id: 0,
        kind: Kind::Flag,
    }; N];
    let mut i = 0;
    while i < N {
        let attribute = request.attributes[i];
        policy[i] = Attribute {
            id: attribute.id,
            kind: kind(&attribute.kind),
        };
        i += 1;
    }
    policy
}

// Inline, as it can panic, and only at compile time.
#[inline]
const fn kind(kind: &uapi::Kind) -> Kind {
    match kind {
        uapi::Kind::U8(limits) => Kind::U8 {
            min: *limits.start(),
            max: *limits.end(),
        },
        uapi::Kind::U16(limits) => Kind::U16 {
            min: *limits.start(),
            max: *limits.end(),
        },
        uapi::Kind::U32(limits) => Kind::U32 {
            min: *limits.start(),
            max: *limits.end(),
        },
        uapi::Kind::Str(max_len) => Kind::Str {
            max_len: *max_len as u16,
        },
        uapi::Kind::Bytes(len) => Kind::Binary {
            min_len: *len as u16,
            max_len: *len as u16,
        },
        uapi::Kind::Flag => Kind::Flag,
        uapi::Kind::Reply => panic!("an attribute that no request carries"),
    }
}

/// The family.
pub(crate) struct Family;

impl rrdma::netlink::Family for Family {
    const NAME: &'static CStr = uapi::FAMILY_CSTR;
    const VERSION: u8 = uapi::VERSION;
    type Context = Arc<Registry>;
    const OPERATIONS: &'static [Operation<Self>] = operations![
        CONNECT_DO: Some(request::connect), None;
        DISCONNECT_DO: Some(request::disconnect), None;
        CTRL_GET_DO: Some(request::get_controller), None;
        CTRL_GET_DUMP: None, Some(request::dump_controllers);
        NS_GET_DO: Some(request::get_namespace), None;
        NS_GET_DUMP: None, Some(request::dump_namespaces);
        CTRL_RESET_DO: Some(request::reset), None;
        CTRL_SET_DO: Some(request::set), None;
        DISCOVER_DO: Some(request::discover), None;
        DISCOVER_GET_DO: Some(request::get_discovery), None;
        DISCOVER_GET_DUMP: None, Some(request::dump_entries);
        STATS_GET_DO: Some(request::get_stats), None;
        STATS_GET_DUMP: None, Some(request::dump_stats);
        STATS_SET_DO: Some(request::set_stats), None;
        CTRL_RESCAN_DO: Some(request::rescan), None;
    ];
    const GROUPS: &'static [&'static CStr] = &[uapi::GROUP_EVENTS_CSTR];
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
