// SPDX-License-Identifier: GPL-2.0

//! nvme-core and nvme-fabrics for transports in safe Rust.
//!
//! A transport implements [`Transport`] and creates a [`Registration`]. Everything else is in this
//! crate: when queues are connected and disconnected, which states a controller passes, and how its
//! requests end. A transport has no obligation that memory safety depends on.
//!
//! - [`Options`]: what the user asks for.
//! - [`Request`]: a request that the transport owns.
//! - [`WeakController`]: reports errors and events to the controller.
//!
//! The crate uses private headers of the kernel. `tools/boot/check-layout` compares the structures
//! with those of the kernel that the module is for.

/// Prefix of log messages, which `module!` defines in the crate of a module.
const __LOG_PREFIX: &[u8] = b"nvme_core\0";

mod bindings;
mod blk_ops;
mod controller;
mod controller_list;
mod ctrl_loss;
mod hw_queue;
mod options;
mod registration;
mod request;
mod setup;
mod stock_driver;
mod transport;
mod weak_controller;
mod works;

pub use ctrl_loss::CtrlLossTmo;
pub use options::Options;
pub use registration::{Controllers, Registration};
pub use request::{Refusal, Refused, Request, COMMAND_SIZE};
pub use transport::{ConnectParams, TransferLimits, Transport};
pub use weak_controller::{AssociationNumber, WeakController};
