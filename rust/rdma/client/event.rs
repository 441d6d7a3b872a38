// SPDX-License-Identifier: GPL-2.0

//! Events of devices and their ports.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_event`

use crate::{
    bindings,
    text::kernel_display, //
};
use core::fmt;
use kernel::{
    prelude::*,
    str::CStr, //
};

/// The type of an [`Event`] (`enum ib_event_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventKind(bindings::ib_event_type);

impl EventKind {
    /// A port has become active: it can send and receive.
    pub const PORT_ACTIVE: Self = Self(bindings::ib_event_type_IB_EVENT_PORT_ACTIVE);
    /// A port is no longer active.
    pub const PORT_ERROR: Self = Self(bindings::ib_event_type_IB_EVENT_PORT_ERR);
    /// The local identifier (LID) of a port has changed.
    pub const LID_CHANGE: Self = Self(bindings::ib_event_type_IB_EVENT_LID_CHANGE);
    /// The P_Key table of a port has changed.
    pub const PKEY_CHANGE: Self = Self(bindings::ib_event_type_IB_EVENT_PKEY_CHANGE);
    /// The GID table of a port has changed; with RoCE, because a network device gained or lost an
    /// address.
    pub const GID_CHANGE: Self = Self(bindings::ib_event_type_IB_EVENT_GID_CHANGE);
    /// A port has another subnet manager.
    pub const SM_CHANGE: Self = Self(bindings::ib_event_type_IB_EVENT_SM_CHANGE);
    /// The subnet manager has lost its registrations: clients of it must register again.
    pub const CLIENT_REREGISTER: Self = Self(bindings::ib_event_type_IB_EVENT_CLIENT_REREGISTER);
    /// The speed of a port's link has changed.
    pub const SPEED_CHANGE: Self = Self(bindings::ib_event_type_IB_EVENT_DEVICE_SPEED_CHANGE);
    /// The device has failed. It does not work until it is reset, and is removed before that.
    pub const DEVICE_FATAL: Self = Self(bindings::ib_event_type_IB_EVENT_DEVICE_FATAL);
}

/// An event of a device or of one of its ports (`struct ib_event`).
///
/// Events of queue pairs, completion queues and shared receive queues go to the owners of those.
///
/// An event is a hint to read the state again, not a record of a change: one event may stand for
/// several changes, and more may have followed when it is handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    kind: EventKind,
    port: u32,
}

impl Event {
    /// Converts an event.
    ///
    /// # Safety
    ///
    /// `raw` must be an event of a device or a port.
    pub(super) unsafe fn from_raw(raw: &bindings::ib_event) -> Self {
        Self {
            kind: EventKind(raw.event),
            // SAFETY: Every bit pattern is a valid `port_num`. The core sets it for events of
            // ports.
            port: unsafe { raw.element.port_num },
        }
    }

    /// Returns the type of the event.
    pub fn kind(self) -> EventKind {
        self.kind
    }

    /// Returns the number of the port; `None` for an event of the whole device.
    pub fn port(self) -> Option<u32> {
        (self.kind != EventKind::DEVICE_FATAL).then_some(self.port)
    }
}

impl fmt::Display for Event {
    /// Prints the text of `ib_event_msg`, without the port.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: `ib_event_msg` returns a static string for any number.
        let message = unsafe { CStr::from_char_ptr(bindings::ib_event_msg(self.kind.0)) };
        f.write_str(message.to_str().unwrap_or_default())
    }
}

kernel_display!(Event);
