// SPDX-License-Identifier: GPL-2.0

//! The generic netlink family `rnvmf`.
//!
//! `Documentation/netlink/specs/rnvmf.yaml` specifies it; [`uapi`] is generated from that file. A
//! request acts on controllers of the network namespace of its socket.

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
        Message,
        Operation,
        Registration, //
    },
};

/// Lists operations: a request of the specification, and its handler for do or dump.
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

/// Returns the policy of a request.
const fn policy<const N: usize>(request: &uapi::Request) -> [Attribute; N] {
    let mut policy = [Attribute {
        id: 0,
        kind: Kind::Flag,
    }; N];
    let mut i = 0;
    while i < N {
        let attribute = request.attributes[i];
        let kind = kind(attribute.kind);
        assert!(kind.is_some(), "a type that no request carries");
        if let Some(kind) = kind {
            policy[i] = Attribute {
                id: attribute.id,
                kind,
            };
        }
        i += 1;
    }
    policy
}

/// Returns how an attribute of a request is checked; `None` for a type that no request carries.
const fn kind(kind: uapi::Kind) -> Option<Kind> {
    Some(match kind {
        uapi::Kind::U8 { min, max } => Kind::U8 { min, max },
        uapi::Kind::U16 { min, max } => Kind::U16 { min, max },
        uapi::Kind::U32 { min, max } => Kind::U32 { min, max },
        uapi::Kind::Str(max_len) => Kind::Str {
            max_len: max_len as u16,
        },
        uapi::Kind::Bytes(len) => Kind::Binary {
            min_len: len as u16,
            max_len: len as u16,
        },
        uapi::Kind::Flag => Kind::Flag,
        uapi::Kind::S32 | uapi::Kind::Uint | uapi::Kind::Nest(_) | uapi::Kind::Nests(_) => {
            return None;
        }
    })
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

/// Index of the multicast group `events` in [`Family::GROUPS`](rrdma::netlink::Family::GROUPS).
const EVENTS: usize = 0;

/// Registers the family and multicasts events through it.
#[pin_data]
pub(crate) struct NetlinkEvents {
    /// `None` before [`start`](Self::start) and after [`stop`](Self::stop).
    #[pin]
    family: Mutex<Option<Arc<Registration<Family>>>>,
}

impl NetlinkEvents {
    /// Allocates the object. May sleep.
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
        let family = Arc::new(Registration::new(Ok(registry), module)?, GFP_KERNEL)?;
        *self.family.lock() = Some(family);
        Ok(())
    }

    /// Unregisters the family and waits for its requests. Sleeps.
    pub(crate) fn stop(&self) {
        // Unlocked before unregistering, which waits for requests that may take the lock.
        let family = self.family.lock().take();
        if let Some(family) = family {
            // Not left to the last reference: a request that sends an event holds one, and cannot
            // wait for itself.
            family.unregister();
        }
    }

    /// Multicasts an event in a network namespace. Best effort: listeners get `ENOBUFS` for a lost
    /// event. May sleep.
    fn multicast(
        &self,
        namespace: &net::Namespace,
        command: Command,
        fill: impl FnOnce(&mut Message<'_>) -> Result,
    ) {
        let family = self.family.lock().clone();
        let Some(family) = family else { return };
        if let Err(error) = family.multicast(namespace, EVENTS, command as u8, fill) {
            let (event, error) = (command.name(), error.to_errno());
            pr_debug!("netlink: {event} not sent: error {error}\n");
        }
    }
}

impl EventSink for NetlinkEvents {
    fn notify(&self, ctrl: &CtrlView<'_>, event: Event<'_>) {
        let (command, namespace) = match event {
            Event::Added => (Command::CtrlAddNtf, None),
            Event::Changed => (Command::CtrlChangeNtf, None),
            Event::Removed => (Command::CtrlDelNtf, None),
            Event::NamespaceAdded(namespace) => (Command::NsAddNtf, Some(namespace)),
            Event::NamespaceChanged(namespace) => (Command::NsChangeNtf, Some(namespace)),
            Event::NamespaceRemoved(namespace) => (Command::NsDelNtf, Some(namespace)),
        };
        self.multicast(
            &ctrl.options.namespace,
            command,
            |message| match namespace {
                Some(namespace) => encode::namespace(message, ctrl.id, namespace),
                None => encode::controller(message, ctrl),
            },
        );
    }

    fn notify_discovery(&self, discovery: &DiscoveryView<'_>) {
        self.multicast(discovery.net, Command::DiscoverNtf, |message| {
            encode::discovery(message, discovery)
        });
    }
}
