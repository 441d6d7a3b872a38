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

/// An event of a device or of one of its ports (`enum ib_event_type`).
///
/// Events of queue pairs, completion queues and shared receive queues go to the owners of those.
///
/// An event is a hint to read the state again, not a record of a change: one event may stand for
/// several changes, and more may have followed when it is handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A port has become active: it can send and receive.
    PortActive {
        /// The number of the port.
        port: u32,
    },
    /// A port is no longer active.
    PortError {
        /// The number of the port.
        port: u32,
    },
    /// The local identifier (LID) of a port has changed.
    LidChange {
        /// The number of the port.
        port: u32,
    },
    /// The P_Key table of a port has changed.
    PkeyChange {
        /// The number of the port.
        port: u32,
    },
    /// The GID table of a port has changed; with RoCE, because a network device gained or lost an
    /// address.
    GidChange {
        /// The number of the port.
        port: u32,
    },
    /// A port has another subnet manager.
    SmChange {
        /// The number of the port.
        port: u32,
    },
    /// The subnet manager has lost its registrations: clients of it must register again.
    ClientReregister {
        /// The number of the port.
        port: u32,
    },
    /// The speed of a port's link has changed.
    SpeedChange {
        /// The number of the port.
        port: u32,
    },
    /// The device has failed. It does not work until it is reset, and is removed before that.
    DeviceFatal,
    /// Another event, with this number.
    Other(u32),
}

impl Event {
    /// Converts an event.
    ///
    /// # Safety
    ///
    /// `raw` must be an event of a device or a port.
    pub(super) unsafe fn from_raw(raw: &bindings::ib_event) -> Self {
        // SAFETY: Every bit pattern is a valid `port_num`. The core sets it for events of ports.
        let port = unsafe { raw.element.port_num };
        match raw.event {
            bindings::ib_event_type_IB_EVENT_PORT_ACTIVE => Self::PortActive { port },
            bindings::ib_event_type_IB_EVENT_PORT_ERR => Self::PortError { port },
            bindings::ib_event_type_IB_EVENT_LID_CHANGE => Self::LidChange { port },
            bindings::ib_event_type_IB_EVENT_PKEY_CHANGE => Self::PkeyChange { port },
            bindings::ib_event_type_IB_EVENT_GID_CHANGE => Self::GidChange { port },
            bindings::ib_event_type_IB_EVENT_SM_CHANGE => Self::SmChange { port },
            bindings::ib_event_type_IB_EVENT_CLIENT_REREGISTER => Self::ClientReregister { port },
            bindings::ib_event_type_IB_EVENT_DEVICE_SPEED_CHANGE => Self::SpeedChange { port },
            bindings::ib_event_type_IB_EVENT_DEVICE_FATAL => Self::DeviceFatal,
            other => Self::Other(other),
        }
    }

    fn as_raw(self) -> bindings::ib_event_type {
        match self {
            Self::PortActive { .. } => bindings::ib_event_type_IB_EVENT_PORT_ACTIVE,
            Self::PortError { .. } => bindings::ib_event_type_IB_EVENT_PORT_ERR,
            Self::LidChange { .. } => bindings::ib_event_type_IB_EVENT_LID_CHANGE,
            Self::PkeyChange { .. } => bindings::ib_event_type_IB_EVENT_PKEY_CHANGE,
            Self::GidChange { .. } => bindings::ib_event_type_IB_EVENT_GID_CHANGE,
            Self::SmChange { .. } => bindings::ib_event_type_IB_EVENT_SM_CHANGE,
            Self::ClientReregister { .. } => bindings::ib_event_type_IB_EVENT_CLIENT_REREGISTER,
            Self::SpeedChange { .. } => bindings::ib_event_type_IB_EVENT_DEVICE_SPEED_CHANGE,
            Self::DeviceFatal => bindings::ib_event_type_IB_EVENT_DEVICE_FATAL,
            Self::Other(number) => number,
        }
    }

    /// Returns the number of the port; `None` for an event of the whole device.
    pub fn port(self) -> Option<u32> {
        match self {
            Self::PortActive { port }
            | Self::PortError { port }
            | Self::LidChange { port }
            | Self::PkeyChange { port }
            | Self::GidChange { port }
            | Self::SmChange { port }
            | Self::ClientReregister { port }
            | Self::SpeedChange { port } => Some(port),
            Self::DeviceFatal | Self::Other(_) => None,
        }
    }
}

impl fmt::Display for Event {
    /// Prints the text of `ib_event_msg`, without the port.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: `ib_event_msg` returns a static string for any number.
        let message = unsafe { CStr::from_char_ptr(bindings::ib_event_msg(self.as_raw())) };
        f.write_str(message.to_str().unwrap_or_default())
    }
}

kernel_display!(Event);
