// SPDX-License-Identifier: GPL-2.0

//! Asynchronous events, which a controller reports by completing an Asynchronous Event Request.
//!
//! Source: NVMe Base 2.3, sections 5.2.2 (Asynchronous Event Request command) and 5.2.26.1.5
//! (Asynchronous Event Configuration).

use core::fmt;

/// Asynchronous Event Configuration: the events that the controller reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsyncEventConfig(u32);

impl AsyncEventConfig {
    const NAMESPACE_ATTRIBUTES: u32 = 1 << 8;
    const ANA_CHANGE: u32 = 1 << 11;
    const DISCOVERY_LOG: u32 = 1 << 31;

    /// Returns the events that the host handles and the controller supports; `None` if there are
    /// none. `oaes` is
    /// [`Controller::async_events`](crate::format::identify::Controller::async_events).
    ///
    /// Firmware activation notices are not enabled: the host waits for commands that the controller
    /// delays during activation, as for any other.
    pub const fn for_io(oaes: u32) -> Option<Self> {
        Self::among(oaes, Self::NAMESPACE_ATTRIBUTES | Self::ANA_CHANGE)
    }

    /// Returns the event of a discovery controller, a change of its log; `None` if it is not
    /// supported.
    pub const fn for_discovery(oaes: u32) -> Option<Self> {
        Self::among(oaes, Self::DISCOVERY_LOG)
    }

    const fn among(oaes: u32, wanted: u32) -> Option<Self> {
        match oaes & wanted {
            0 => None,
            bits => Some(Self(bits)),
        }
    }

    /// Returns the value of the feature.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

/// An event, decoded from the result of an Asynchronous Event Request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsyncEvent {
    /// Namespaces were attached, detached or changed.
    NamespacesChanged,
    /// The ANA state of namespaces changed.
    AnaChanged,
    /// The discovery log changed and must be read again.
    DiscoveryChanged,
    /// Persistent internal error: only a reset clears it.
    PersistentError,
    /// Any other event.
    Other {
        /// Event type: 0 error, 1 health, 2 notice, 6 I/O command set, 7 vendor specific.
        kind: u8,
        /// Event information: which event of the type.
        information: u8,
        /// Log page to read before the controller reports another event of the type.
        log_page: u8,
    },
}

impl AsyncEvent {
    /// Decodes the 32-bit result of a successful request.
    pub const fn from_result(result: u32) -> Self {
        let [kind, information, log_page, _] = result.to_le_bytes();
        let kind = kind & 7;
        match (kind, information) {
            (0, 0x03) => Self::PersistentError,
            (2, 0x00) => Self::NamespacesChanged,
            (2, 0x03) => Self::AnaChanged,
            (2, 0xf0) => Self::DiscoveryChanged,
            _ => Self::Other {
                kind,
                information,
                log_page,
            },
        }
    }
}

impl fmt::Display for AsyncEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, information, log_page) = match *self {
            Self::NamespacesChanged => return f.write_str("namespaces changed"),
            Self::AnaChanged => return f.write_str("asymmetric namespace access changed"),
            Self::DiscoveryChanged => return f.write_str("discovery log changed"),
            Self::PersistentError => return f.write_str("persistent internal error"),
            Self::Other {
                kind,
                information,
                log_page,
            } => (kind, information, log_page),
        };
        match (kind, information) {
            (0, 0x02) => f.write_str("diagnostic failure")?,
            (0, 0x04) => f.write_str("transient internal error")?,
            (0, 0x05) => f.write_str("firmware image load error")?,
            (0, _) => write!(f, "error {information:#x}")?,
            (1, 0x00) => f.write_str("health: subsystem reliability degraded")?,
            (1, 0x01) => f.write_str("health: temperature beyond a threshold")?,
            (1, 0x02) => f.write_str("health: spare capacity below its threshold")?,
            (1, _) => write!(f, "health {information:#x}")?,
            (2, 0x01) => f.write_str("firmware activation starting")?,
            (_, _) => write!(f, "event {information:#x} of type {kind}")?,
        }
        write!(f, " (log page {log_page:#04x})")
    }
}

#[cfg(test)]
mod tests;
