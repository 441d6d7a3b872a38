// SPDX-License-Identifier: GPL-2.0

//! Asynchronous events: what a controller tells in its own time, as the response to a request
//! that it keeps until then.

use core::fmt;

/// A set of events to be told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsyncEventConfig(u32);

impl AsyncEventConfig {
    const NAMESPACE_ATTRIBUTES: u32 = 1 << 8;
    const DISCOVERY_LOG: u32 = 1 << 31;

    /// The events that a host acts on, of those that the controller supports:
    /// `oaes` of [`crate::format::identify::Controller`]. `None` where that is none.
    ///
    /// That firmware is about to be activated is not among them: what the controller
    /// holds back meanwhile is waited for as any other command is.
    #[must_use]
    pub const fn for_io(oaes: u32) -> Option<Self> {
        Self::among(oaes, Self::NAMESPACE_ATTRIBUTES)
    }

    /// The same of a discovery controller: that its log changed.
    #[must_use]
    pub const fn for_discovery(oaes: u32) -> Option<Self> {
        Self::among(oaes, Self::DISCOVERY_LOG)
    }

    const fn among(oaes: u32, wanted: u32) -> Option<Self> {
        match oaes & wanted {
            0 => None,
            bits => Some(Self(bits)),
        }
    }

    /// The set as the feature has it.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

/// An event, from the result of an asynchronous event request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsyncEvent {
    /// Namespaces came, went or changed.
    NamespacesChanged,
    /// What a discovery controller knows of is another: its log is to be read again.
    DiscoveryChanged,
    /// The controller has an internal error that only a reset can clear.
    PersistentError,
    /// Any other.
    Other {
        /// Kind of event: 0 error, 1 health, 2 notice, 6 command set, 7 vendor.
        kind: u8,
        /// Which event of its kind.
        information: u8,
        /// The log page to read, which lets the next event of the kind come.
        log_page: u8,
    },
}

impl AsyncEvent {
    /// Reads an event from the 32-bit result of a successful request.
    #[must_use]
    pub const fn from_result(result: u32) -> Self {
        let [kind, information, log_page, _] = result.to_le_bytes();
        let kind = kind & 7;
        match (kind, information) {
            (0, 0x03) => Self::PersistentError,
            (2, 0x00) => Self::NamespacesChanged,
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
            (1, 0x00) => f.write_str("health: the subsystem is not reliable")?,
            (1, 0x01) => f.write_str("health: a temperature is beyond its threshold")?,
            (1, 0x02) => f.write_str("health: spare capacity is below its threshold")?,
            (1, _) => write!(f, "health {information:#x}")?,
            (2, 0x01) => f.write_str("firmware is about to be activated")?,
            (_, _) => write!(f, "event {information:#x} of kind {kind}")?,
        }
        write!(f, " (log page {log_page:#04x})")
    }
}

#[cfg(test)]
mod tests;
