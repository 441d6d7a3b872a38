// SPDX-License-Identifier: GPL-2.0

//! Why a target rejects a Connect command.

use super::{CONTROLLER_ID_AT, HOST_AT, HOST_ID_AT, SUBSYSTEM_AT};
use crate::format::sqe::Connect;
use crate::format::status::{Code, Status};
use core::fmt;

/// Reason why a target rejects a Connect command, decoded from status and result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectError {
    /// The target does not support the record format.
    Format,
    /// The controller is busy or not available.
    Busy,
    /// A parameter is invalid.
    InvalidParameter(Parameter),
    /// The host must restart discovery.
    RestartDiscovery,
    /// The host is not allowed to access the subsystem.
    HostNotAllowed,
    /// The host must authenticate.
    AuthenticationRequired,
    /// Any other status.
    Other(Status),
}

/// An invalid parameter of a Connect command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// Subsystem NQN: the target has no such subsystem on this port.
    Subsystem,
    /// Host NQN.
    Host,
    /// Host identifier.
    HostId,
    /// Controller identifier.
    ControllerId,
    /// Queue identifier.
    QueueId,
    /// Queue size.
    QueueSize,
    /// Keep alive timeout.
    KeepAlive,
    /// Field at this byte of the command.
    Command(u16),
    /// Field at this byte of the data.
    Data(u16),
}

impl Parameter {
    /// In the result: the offset is one into the data (IATTR).
    const IN_DATA: u32 = 1 << 16;

    fn from_result(result: u32) -> Self {
        let offset = (result & 0xffff) as u16;
        if result & Self::IN_DATA == 0 {
            match offset.into() {
                Connect::QUEUE_ID_AT => Self::QueueId,
                Connect::SQ_SIZE_AT => Self::QueueSize,
                Connect::KEEP_ALIVE_AT => Self::KeepAlive,
                _ => Self::Command(offset),
            }
        } else {
            match offset.into() {
                HOST_ID_AT => Self::HostId,
                CONTROLLER_ID_AT => Self::ControllerId,
                SUBSYSTEM_AT => Self::Subsystem,
                HOST_AT => Self::Host,
                _ => Self::Data(offset),
            }
        }
    }
}

impl ConnectError {
    /// Decodes the status and 32-bit result of a Connect command; `None` if it succeeded.
    pub fn from_completion(status: Status, result: u32) -> Option<Self> {
        match status.code() {
            Code::SUCCESS => None,
            Code::CONNECT_FORMAT => Some(Self::Format),
            Code::CONNECT_BUSY => Some(Self::Busy),
            Code::CONNECT_INVALID_PARAMETER => {
                Some(Self::InvalidParameter(Parameter::from_result(result)))
            }
            Code::CONNECT_RESTART_DISCOVERY => Some(Self::RestartDiscovery),
            Code::CONNECT_INVALID_HOST => Some(Self::HostNotAllowed),
            Code::AUTHENTICATION_REQUIRED => Some(Self::AuthenticationRequired),
            _ => Some(Self::Other(status)),
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format => f.write_str("incompatible connect format"),
            Self::Busy => f.write_str("controller is busy or not available"),
            Self::InvalidParameter(parameter) => fmt::Display::fmt(parameter, f),
            Self::RestartDiscovery => f.write_str("discovery must be restarted"),
            Self::HostNotAllowed => f.write_str("host is not allowed to use the subsystem"),
            Self::AuthenticationRequired => f.write_str("authentication required"),
            Self::Other(status) => fmt::Display::fmt(status, f),
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subsystem => f.write_str("no such subsystem"),
            Self::Host => f.write_str("invalid host NQN"),
            Self::HostId => f.write_str("invalid host identifier"),
            Self::ControllerId => f.write_str("invalid controller identifier"),
            Self::QueueId => f.write_str("invalid queue identifier"),
            Self::QueueSize => f.write_str("invalid queue size"),
            Self::KeepAlive => f.write_str("invalid keep alive timeout"),
            Self::Command(at) => write!(f, "invalid parameter at byte {at} of the command"),
            Self::Data(at) => write!(f, "invalid parameter at byte {at} of the connect data"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(field: u16, result: u32) -> Option<ConnectError> {
        ConnectError::from_completion(Status::from_wire(field << 1), result)
    }

    #[test]
    fn reasons() {
        let cases = [
            (0x4180, ConnectError::Format),
            (0x4181, ConnectError::Busy),
            (0x0181, ConnectError::Busy),
            (0x4183, ConnectError::RestartDiscovery),
            (0x4184, ConnectError::HostNotAllowed),
            (0x4191, ConnectError::AuthenticationRequired),
            (0x4006, ConnectError::Other(Status::from_wire(0x800c))),
        ];
        for (field, expected) in cases {
            assert_eq!(decode(field, 0), Some(expected));
        }
        assert_eq!(decode(0, 0x0001_0100), None);
    }

    #[test]
    fn invalid_parameters() {
        let cases = [
            (0x0001_0100, Parameter::Subsystem, "no such subsystem"),
            (0x0001_0200, Parameter::Host, "invalid host NQN"),
            (0x0001_0000, Parameter::HostId, "invalid host identifier"),
            (
                0x0001_0010,
                Parameter::ControllerId,
                "invalid controller identifier",
            ),
            (0x0000_002a, Parameter::QueueId, "invalid queue identifier"),
            (0x0000_002c, Parameter::QueueSize, "invalid queue size"),
            (
                0x0000_0030,
                Parameter::KeepAlive,
                "invalid keep alive timeout",
            ),
            (
                0x0000_0000,
                Parameter::Command(0),
                "invalid parameter at byte 0 of the command",
            ),
            (
                0x0001_0001,
                Parameter::Data(1),
                "invalid parameter at byte 1 of the connect data",
            ),
        ];
        for (result, parameter, text) in cases {
            let error = decode(0x4182, result).unwrap();
            assert_eq!(
                error,
                ConnectError::InvalidParameter(parameter),
                "{result:#x}"
            );
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn every_status_has_a_text() {
        for field in 1..=0x7fff {
            let error = decode(field, 0);
            assert_eq!(error.is_none(), field & 0x7ff == 0);
            assert!(error.is_none_or(|error| !error.to_string().is_empty()));
        }
    }
}
