// SPDX-License-Identifier: GPL-2.0

//! Names of controllers.

use kernel::fmt;

/// The name of a controller, as in `/dev` and in the kernel's log.
#[derive(Clone, Copy)]
pub(crate) enum CtrlName {
    /// `rnvmf` and this number. The number is reused as soon as the controller is gone.
    Device(u32),
    /// A controller that exists only for the discovery with this number.
    Discovery(u32),
}

impl CtrlName {
    /// Returns the number in the name.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Device(number) | Self::Discovery(number) => number,
        }
    }
}

impl fmt::Display for CtrlName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(number) => write!(f, "rnvmf{number}"),
            Self::Discovery(number) => write!(f, "discovery {number}"),
        }
    }
}
