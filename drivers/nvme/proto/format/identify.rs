// SPDX-License-Identifier: GPL-2.0

//! Data structures that Identify returns.
//!
//! Source: NVMe Base 2.3, section 5.2.13 (Identify command); for the NVM command set: NVM Command
//! Set Specification.

mod active_namespaces;
mod controller;
mod descriptors;
mod independent;
mod namespace;
mod nvm_controller;
mod nvm_namespace;
mod text;
mod wwid;

use core::fmt;

pub use self::active_namespaces::{ActiveNamespaces, InvalidList};
pub use self::controller::{Controller, ControllerType, KeepAliveMode};
pub use self::descriptors::{InvalidDescriptors, NamespaceIds};
pub use self::independent::IndependentNamespace;
pub use self::namespace::{LbaFormat, Namespace, PerformanceHints};
pub use self::nvm_controller::NvmController;
pub use self::nvm_namespace::NvmNamespace;
pub use self::text::Text;
pub use self::wwid::{Hex, Wwid};

/// Data that is shorter than [`crate::format::sqe::Identify::DATA_SIZE`], with its length in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortData(pub usize);

impl fmt::Display for ShortData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes are too short for identify data", self.0)
    }
}
