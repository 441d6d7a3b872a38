// SPDX-License-Identifier: GPL-2.0

//! Asynchronous events: what a controller tells without being asked.

/// A set of events to be told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Events(u32);

impl Events {
    const NAMESPACE_ATTRIBUTES: u32 = 1 << 8;

    /// The events that a host acts on, of those that the controller supports:
    /// `oaes` of [`crate::identify::Controller`]. `None` where that is none.
    #[must_use]
    pub const fn from_supported(oaes: u32) -> Option<Self> {
        match oaes & Self::NAMESPACE_ATTRIBUTES {
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
            _ => Self::Other {
                kind,
                information,
                log_page,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_supported_events_are_asked_for() {
        assert_eq!(Events::from_supported(0), None);
        assert_eq!(Events::from_supported(!0x100), None);
        assert_eq!(Events::from_supported(0x8000_0900).unwrap().bits(), 0x100);
    }

    #[test]
    fn results() {
        let cases = [
            (0x0004_0002, AsyncEvent::NamespacesChanged),
            (
                0x0003_0102,
                AsyncEvent::Other {
                    kind: 2,
                    information: 1,
                    log_page: 3,
                },
            ),
            (0x0001_0300, AsyncEvent::PersistentError),
            (0xff04_00fa, AsyncEvent::NamespacesChanged),
            (
                0x0070_f002,
                AsyncEvent::Other {
                    kind: 2,
                    information: 0xf0,
                    log_page: 0x70,
                },
            ),
            (
                0x0002_0101,
                AsyncEvent::Other {
                    kind: 1,
                    information: 1,
                    log_page: 2,
                },
            ),
            (
                0x0000_0000,
                AsyncEvent::Other {
                    kind: 0,
                    information: 0,
                    log_page: 0,
                },
            ),
            (
                0x0004_0307,
                AsyncEvent::Other {
                    kind: 7,
                    information: 3,
                    log_page: 4,
                },
            ),
        ];
        for (result, event) in cases {
            assert_eq!(AsyncEvent::from_result(result), event, "{result:#x}");
        }
    }
}
