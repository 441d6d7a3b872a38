// SPDX-License-Identifier: GPL-2.0

//! Names of controllers and disks.

use kernel::fmt;
use rrdma::text::Message;

/// The name of a disk; as long as the block layer takes.
pub(crate) type DiskName = Message<31>;

/// The name of a controller, as in `/dev` and in the kernel's log.
#[derive(Clone, Copy)]
pub(crate) enum CtrlName {
    /// `rnvmf` and this number, which its device has, too. A number is given again as soon as its
    /// controller is gone.
    Device(u32),
    /// A controller that exists only for the discovery of this number.
    Discovery(u32),
}

impl CtrlName {
    /// The number in it.
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

/// The name of the disk of a namespace.
pub(crate) fn disk_name(controller: u32, nsid: u32) -> DiskName {
    Message::new(format_args!("rnvmf{controller}n{nsid}"))
}
