// SPDX-License-Identifier: GPL-2.0

//! What a controller is called.

use kernel::fmt;

/// The name of a controller, as in `/dev` and in the kernel's log.
#[derive(Clone, Copy)]
pub(crate) enum Name {
    /// `rnvmf` and this number, which its device has, too: the next controller gets it as soon as
    /// this one is gone.
    Device(u32),
    /// It is there for the discovery of this number only.
    Discovery(u32),
}

impl Name {
    /// The number in it.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Device(number) | Self::Discovery(number) => number,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(number) => write!(f, "rnvmf{number}"),
            Self::Discovery(number) => write!(f, "discovery {number}"),
        }
    }
}
