// SPDX-License-Identifier: GPL-2.0

//! What happens to a device and its ports while a client has it.
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

/// Something that has happened to a device (`enum ib_event_type`).
///
/// Events of queue pairs, completion queues and shared receive queues are told to
/// the owner of these, not here. An event is a hint to look again, not a record:
/// several changes may be one event, and by the time it is told there may have
/// been another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A port can send and receive.
    PortActive {
        /// The number of the port.
        port: u32,
    },
    /// A port can send and receive no more.
    PortError {
        /// The number of the port.
        port: u32,
    },
    /// The local identifier of a port is another.
    LidChange {
        /// The number of the port.
        port: u32,
    },
    /// The P_Key table of a port is another.
    PkeyChange {
        /// The number of the port.
        port: u32,
    },
    /// The GID table of a port is another: with RoCE, a network device has got or
    /// lost an address.
    GidChange {
        /// The number of the port.
        port: u32,
    },
    /// The subnet manager of a port is another.
    SmChange {
        /// The number of the port.
        port: u32,
    },
    /// The subnet manager has forgotten who is registered with it.
    ClientReregister {
        /// The number of the port.
        port: u32,
    },
    /// The link of a port is faster or slower than it was.
    SpeedChange {
        /// The number of the port.
        port: u32,
    },
    /// The device is broken: nothing of it will work until it is reset, for which it
    /// is removed.
    DeviceFatal,
    /// Something else, of this number.
    Other(u32),
}

impl Event {
    /// # Safety
    ///
    /// `raw` must be an event of a device as a whole.
    pub(super) unsafe fn from_raw(raw: &bindings::ib_event) -> Self {
        // SAFETY: All members of the union are plain bytes; this one is set for
        // events of ports.
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

    /// The number of the port that it is about; `None` if it is about the device.
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
    /// What the verbs call it (`ib_event_msg`), without the port.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: The function returns a static string for any number.
        let message = unsafe { CStr::from_char_ptr(bindings::ib_event_msg(self.as_raw())) };
        f.write_str(message.to_str().unwrap_or_default())
    }
}

kernel_display!(Event);
