// SPDX-License-Identifier: GPL-2.0

//! What a sample needs of a device that not every device has.

use super::failure::Failure;
use core::fmt;
use kernel::prelude::*;
use rrdma::rdma::device::{
    port::Protocol,
    AtomicScope,
    Device, //
};

/// A capability, by its name.
#[derive(Clone, Copy)]
pub(crate) enum DeviceRequirement {
    /// Compare-and-swap, fetch-and-add.
    Atomics,
    /// Queue pairs that are connected without the connection manager.
    ConnectionsByHand,
    /// Queue pairs for datagrams.
    Datagrams,
    /// Numbers that go with a message or a write.
    ImmediateData,
    /// Queue pairs for unreliable connections.
    UnreliableConnections,
}

impl DeviceRequirement {
    /// Checks that `device` has it.
    pub(crate) fn check(self, device: &Device) -> Result<(), Failure> {
        let has = match self {
            Self::Atomics => device.attributes().atomics != AtomicScope::None,
            // All of these are of InfiniBand's transport, and iWARP is another.
            _ => device
                .ports()
                .all(|port| port.protocol() != Protocol::Iwarp),
        };
        match has {
            true => Ok(()),
            false => Err(Failure::new(
                "device",
                format_args!("{} has no {self}", device.name()),
            )),
        }
    }
}

impl fmt::Display for DeviceRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Atomics => "atomic operations",
            Self::ConnectionsByHand => "connections but those of the connection manager",
            Self::Datagrams => "datagrams",
            Self::ImmediateData => "immediate data",
            Self::UnreliableConnections => "unreliable connections",
        })
    }
}
