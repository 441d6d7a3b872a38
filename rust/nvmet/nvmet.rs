// SPDX-License-Identifier: GPL-2.0

//! nvmet for RDMA transports in safe Rust.
//!
//! A transport implements [`Transport`] and creates a [`Registration`]. nvmet has the subsystems,
//! controllers and commands; a transport has the listeners and queues, and moves the data.
//!
//! - [`Port`]: a port of the configuration.
//! - [`SubmissionQueue`]: nvmet's part of a queue.
//! - [`Request`], [`Parsed`]: a command, owned by whoever may act on it next.
//! - [`Capsule`]: a receive for a command.
//! - [`Sgl`], [`Data`]: the data of a command.
//!
//! The crate uses a private header of the kernel. `tools/boot/check-layout` compares the structures
//! with those of the kernel that the module is for.

/// Prefix of log messages, which `module!` defines in the crate of a module.
const __LOG_PREFIX: &[u8] = b"nvmet\0";

mod bindings;
mod capsule;
mod connecting;
mod data;
mod port;
mod registration;
mod request;
mod retired;
mod submission_queue;
mod transport;
mod types;

pub use capsule::{Capsule, CapsuleReceiver, COMMAND_SIZE};
pub use data::{Data, Sgl};
pub use port::Port;
pub use registration::Registration;
pub use request::{Begun, Completions, Parsed, Request, RequestHandler, Suspended};
pub use submission_queue::{ControllerId, HeldController, SubmissionQueue};
pub use transport::Transport;
pub use types::{
    NamespaceFormat, PassthroughCommand, PassthroughQueue, PortLimit, PortLimits, TransportTypes,
};
