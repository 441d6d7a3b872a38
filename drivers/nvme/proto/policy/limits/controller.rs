// SPDX-License-Identifier: GPL-2.0

//! Whether the host supports a controller.

use crate::format::identify::{Controller, ControllerType};
use core::fmt;

/// Reason why the host does not support a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnsupportedController {
    /// Identify reports another controller identifier than Connect.
    ControllerId {
        /// Identifier that Connect returned.
        connected: u16,
        /// Identifier that Identify returned.
        identified: u16,
    },
    /// It is not an I/O controller.
    Kind(ControllerType),
    /// It has no keep alive timer (KAS is 0).
    NoKeepAlive,
    /// It does not support keyed SGL Data Block descriptors.
    NoKeyedSgl,
    /// Its I/O command capsules (IOCCSZ) are smaller than a command; their size in units of 16
    /// bytes.
    CommandCapsule(u32),
    /// Its I/O response capsules (IORCSZ) are smaller than a response; their size in units of 16
    /// bytes.
    ResponseCapsule(u32),
}

/// Checks that the host supports a controller for I/O over RDMA. `connected` is the controller
/// identifier that Connect returned.
///
/// # Errors
///
/// [`UnsupportedController`].
pub fn check(controller: &Controller, connected: u16) -> Result<(), UnsupportedController> {
    let identified = controller.controller_id;
    if identified != connected {
        return Err(UnsupportedController::ControllerId {
            connected,
            identified,
        });
    }
    if !matches!(
        controller.kind,
        ControllerType::Unknown | ControllerType::Io
    ) {
        return Err(UnsupportedController::Kind(controller.kind));
    }
    if controller.keep_alive_granularity == 0 {
        return Err(UnsupportedController::NoKeepAlive);
    }
    if !controller.has_keyed_sgl() {
        return Err(UnsupportedController::NoKeyedSgl);
    }
    check_sizes(controller)
}

fn check_sizes(controller: &Controller) -> Result<(), UnsupportedController> {
    const COMMAND_UNITS: u32 = 4;
    const RESPONSE_UNITS: u32 = 1;
    if controller.io_command_capsule_size < COMMAND_UNITS {
        return Err(UnsupportedController::CommandCapsule(
            controller.io_command_capsule_size,
        ));
    }
    if controller.io_response_capsule_size < RESPONSE_UNITS {
        return Err(UnsupportedController::ResponseCapsule(
            controller.io_response_capsule_size,
        ));
    }
    Ok(())
}

impl fmt::Display for UnsupportedController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ControllerId {
                connected,
                identified,
            } => {
                write!(
                    f,
                    "connected to controller {connected}, identified {identified}"
                )
            }
            Self::Kind(kind) => write!(f, "not an I/O controller but {kind}"),
            Self::NoKeepAlive => f.write_str("no keep alive timer"),
            Self::NoKeyedSgl => f.write_str("no keyed SGL data block descriptors"),
            Self::CommandCapsule(units) => {
                write!(
                    f,
                    "I/O command capsules of {units} x 16 bytes are too small"
                )
            }
            Self::ResponseCapsule(units) => {
                write!(
                    f,
                    "I/O response capsules of {units} x 16 bytes are too small"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usable() -> Controller {
        let mut controller = Controller::parse(&[0; 4096]).unwrap();
        controller.controller_id = 7;
        controller.kind = ControllerType::Io;
        controller.keep_alive_granularity = 10;
        controller.sgl_support = 1 << 2;
        controller.io_command_capsule_size = 4;
        controller.io_response_capsule_size = 1;
        controller
    }

    #[test]
    fn usable_controllers() {
        assert_eq!(check(&usable(), 7), Ok(()));
        let older = Controller {
            kind: ControllerType::Unknown,
            ..usable()
        };
        assert_eq!(check(&older, 7), Ok(()));
    }

    #[test]
    fn unsupported_controllers() {
        let discovery = ControllerType::Discovery;
        let cases = [
            (
                Controller {
                    controller_id: 8,
                    ..usable()
                },
                UnsupportedController::ControllerId {
                    connected: 7,
                    identified: 8,
                },
            ),
            (
                Controller {
                    kind: discovery,
                    ..usable()
                },
                UnsupportedController::Kind(discovery),
            ),
            (
                Controller {
                    keep_alive_granularity: 0,
                    ..usable()
                },
                UnsupportedController::NoKeepAlive,
            ),
            (
                Controller {
                    sgl_support: !(1 << 2),
                    ..usable()
                },
                UnsupportedController::NoKeyedSgl,
            ),
            (
                Controller {
                    io_command_capsule_size: 3,
                    ..usable()
                },
                UnsupportedController::CommandCapsule(3),
            ),
            (
                Controller {
                    io_response_capsule_size: 0,
                    ..usable()
                },
                UnsupportedController::ResponseCapsule(0),
            ),
        ];
        for (controller, reason) in cases {
            assert_eq!(check(&controller, 7), Err(reason));
            assert!(!reason.to_string().is_empty());
        }
    }
}
